package manage

// Patterns are the endpoints that are served.
func Patterns() []string {
	var all []string
	for _, e := range endpoints() {
		all = append(all, e.pattern)
	}
	return all
}
