package testkit

import (
	"bytes"
	"strings"
)

// section is one file of a txtar archive.
type section struct {
	name string
	data []byte
}

// parseTxtar reads a txtar archive: lines `-- name --` begin a file, and what
// stands before the first is a comment. A file keeps every byte up to the next
// such line, its last newline included.
func parseTxtar(archive []byte) []section {
	var sections []section
	for len(archive) > 0 {
		line := archive
		if end := bytes.IndexByte(archive, '\n'); end >= 0 {
			line = archive[:end+1]
		}
		archive = archive[len(line):]
		if name, ok := marker(line); ok {
			sections = append(sections, section{name: name})
		} else if n := len(sections); n > 0 {
			sections[n-1].data = append(sections[n-1].data, line...)
		}
	}
	return sections
}

// marker is the name on a line that begins a file.
func marker(line []byte) (name string, ok bool) {
	text := strings.TrimRight(string(line), "\r\n")
	inner, ok := strings.CutPrefix(text, "-- ")
	if !ok {
		return "", false
	}
	inner, ok = strings.CutSuffix(inner, " --")
	name = strings.TrimSpace(inner)
	return name, ok && name != ""
}
