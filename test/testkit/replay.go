package testkit

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Recording is a provider's reply as a txtar file keeps it, in the sections
//
//	request        the body that was sent, for a test to send again
//	headers        of the reply, one a line; `Status: 429` sets the status, by default 200
//	response.json  the body, byte for byte; response.sse and response.txt for
//	               other media types
type Recording struct {
	Name    string // the file's, without its folder
	Request []byte
	Status  int
	Header  http.Header
	Body    []byte
}

// ReadRecording reads the recording in the file at path.
func ReadRecording(t testing.TB, path string) Recording {
	t.Helper()
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseRecording(archive)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	r.Name = filepath.Base(path)
	return r
}

func parseRecording(archive []byte) (Recording, error) {
	r := Recording{Status: http.StatusOK, Header: http.Header{}}
	kinds := map[string]string{
		"response.json": "application/json", "response.sse": "text/event-stream", "response.txt": "text/plain; charset=utf-8",
	}
	kind := ""
	for _, s := range parseTxtar(archive) {
		switch {
		case s.name == "request":
			r.Request = s.data
		case s.name == "headers":
			if err := r.readHeader(s.data); err != nil {
				return r, err
			}
		case kinds[s.name] != "" && kind == "":
			kind, r.Body = kinds[s.name], s.data
		default:
			return r, fmt.Errorf("section %q is unknown or one too many", s.name)
		}
	}
	if kind == "" {
		return r, fmt.Errorf("no response section")
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", kind)
	}
	return r, nil
}

func (r *Recording) readHeader(text []byte) error {
	text = append(bytes.TrimRight(text, "\r\n"), "\r\n\r\n"...)
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil {
		return fmt.Errorf("section headers: %w", err)
	}
	r.Header = http.Header(header)
	if status := r.Header.Get("Status"); status != "" {
		r.Header.Del("Status")
		r.Status, err = strconv.Atoi(status)
		if err != nil || r.Status < 200 || r.Status > 599 {
			return fmt.Errorf("section headers: status %q", status)
		}
	}
	return nil
}

// Call is a request that reached a ReplayServer.
type Call struct {
	Method string
	URI    string // path and query, as they were sent
	Header http.Header
	Body   []byte
}

// ReplayServer answers with recordings: the n-th call gets the n-th, and the
// last one is repeated. It is safe for concurrent use.
type ReplayServer struct {
	// URL is where it listens, without a path.
	URL        string
	Recordings []Recording

	mu    sync.Mutex
	calls []Call
	cut   int // -1: not
}

// Replay serves the recording at path, or, when path is a folder, all its
// .txtar files in the order of their names. It is closed with the test.
func Replay(t testing.TB, path string) *ReplayServer {
	t.Helper()
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		paths, _ = filepath.Glob(filepath.Join(path, "*.txtar"))
		slices.Sort(paths)
	}
	s := &ReplayServer{cut: -1}
	for _, p := range paths {
		s.Recordings = append(s.Recordings, ReadRecording(t, p))
	}
	if len(s.Recordings) == 0 {
		t.Fatalf("no recordings in %s", path)
	}
	s.URL = listen(t, s).URL
	return s
}

// CutAfter makes later replies end, with their connection, after n bytes of
// the body; n below 0 makes them whole again.
func (s *ReplayServer) CutAfter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = n
}

// Calls is what reached the server, in order of arrival.
func (s *ReplayServer) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// ServeHTTP implements http.Handler.
func (s *ReplayServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	recording := s.Recordings[min(len(s.calls), len(s.Recordings)-1)]
	s.calls = append(s.calls, Call{r.Method, r.RequestURI, r.Header.Clone(), body})
	cut := s.cut
	s.mu.Unlock()

	for name, values := range recording.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(recording.Status)
	rest, whole := recording.Body, true
	if cut >= 0 && cut < len(rest) {
		rest, whole = rest[:cut], false
	}
	flush := http.NewResponseController(w)
	for _, frame := range frames(rest, recording.Header.Get("Content-Type")) {
		if _, err := w.Write(frame); err != nil {
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
	if !whole {
		panic(http.ErrAbortHandler)
	}
}

// frames is the events of a stream, which are sent one by one; any other body
// is one frame.
func frames(body []byte, kind string) [][]byte {
	if !strings.HasPrefix(kind, "text/event-stream") {
		return [][]byte{body}
	}
	return bytes.SplitAfter(body, []byte("\n\n"))
}
