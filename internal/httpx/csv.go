package httpx

import (
	"net/http"
	"time"
)

// CSVWriter answers with a file of CSV (see csvfile.Writer). Its head is written before the first piece.
type CSVWriter struct {
	http.ResponseWriter
	Name  string        // without its ending
	Stall time.Duration // for how long a client may take nothing
}

// Begin writes the head of the answer.
func (w CSVWriter) Begin() {
	BoundWrites(w.ResponseWriter, w.Stall)
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", `attachment; filename="`+w.Name+`.csv"`)
}
