// Package null makes values that JSON shows as null.
package null

// IfZero is nil for the zero value, else a pointer to a copy.
func IfZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
