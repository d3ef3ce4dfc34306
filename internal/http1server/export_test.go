package http1server

// Watching is how many connections are being watched now.
func Watching(s *Server) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.watch.mu.Lock()
		if c.watch.reading {
			n++
		}
		c.watch.mu.Unlock()
	}
	return n
}
