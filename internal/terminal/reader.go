package terminal

import (
	"io"
	"sync/atomic"
)

// Reader counts what is read, for Watch.
type Reader struct {
	R     io.Reader
	Part  string // of the work that it belongs to
	Total int64  // bytes; 0 or less: unknown
	done  atomic.Int64
}

// Read reads on.
func (r *Reader) Read(b []byte) (int, error) {
	n, err := r.R.Read(b)
	r.done.Add(int64(n))
	return n, err
}

// Sample is how far it is. Safe beside Read.
func (r *Reader) Sample() Sample {
	return Sample{Part: r.Part, Done: r.done.Load(), Total: max(r.Total, 0)}
}
