package selfservice

// Patterns are the endpoints that are served.
func Patterns() []string {
	var all []string
	for _, e := range compile() {
		all = append(all, e.pattern)
	}
	return all
}
