package reqscan

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"modelgate/internal/httpfield"
)

// partHead is what the header lines of one form-data part say.
type partHead struct {
	// name is nil before the Content-Disposition line has been read.
	name        []byte
	isFile      bool
	contentType string
	seen        []string
}

// readLine takes in one header line, without its line end.
func (h *partHead) readLine(line []byte) error {
	key, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || !httpfield.IsToken(key) {
		return formErrorf("malformed part header %s", QuoteName(line))
	}
	for _, c := range value {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return formErrorf("control byte 0x%02x in a part header", c)
		}
	}
	header := strings.ToLower(string(key))
	for _, earlier := range h.seen {
		if earlier == header {
			return formErrorf("a part has two %s headers", QuoteName(key))
		}
	}
	h.seen = append(h.seen, header)
	value = bytes.Trim(value, " \t")
	switch header {
	case "content-disposition":
		return h.readDisposition(value)
	case "content-type":
		h.contentType = string(value)
	case "content-transfer-encoding":
		switch strings.ToLower(string(value)) {
		case "7bit", "8bit", "binary":
		default:
			return formErrorf("part encoding %s is not supported: send the bytes as they are", QuoteName(value))
		}
	}
	return nil
}

// readDisposition reads form-data; name="…"; filename="…". Names that carry
// RFC 2231 encoding, and file names that hide a quote, are errors because
// readers disagree about them.
func (h *partHead) readDisposition(value []byte) error {
	rest, ok := bytes.CutPrefix(value, []byte("form-data"))
	if !ok {
		return formErrorf("a part is not form-data: %s", QuoteName(value))
	}
	seen := map[string]bool{}
	for len(rest) > 0 {
		key, text, after, ok := dispositionParam(rest)
		if !ok || seen[key] {
			return formErrorf("malformed Content-Disposition %s", QuoteName(value))
		}
		seen[key], rest = true, after
		switch key {
		case "name":
			if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) || len(text) != len(bytes.TrimSpace(text)) {
				return formErrorf("part name %s holds illegal characters", QuoteName(text))
			}
			h.name = append([]byte{}, text...)
		case "filename", "filename*":
			h.isFile = true
		default:
			return formErrorf("unknown parameter %q in a Content-Disposition", key)
		}
	}
	return nil
}

// dispositionParam splits the first parameter, with its leading semicolon,
// off b.
func dispositionParam(b []byte) (key string, text, rest []byte, ok bool) {
	b, ok = bytes.CutPrefix(bytes.TrimLeft(b, " \t"), []byte(";"))
	if !ok {
		return "", nil, nil, false
	}
	name, value, ok := bytes.Cut(bytes.TrimLeft(b, " \t"), []byte("="))
	if !ok || !httpfield.IsToken(name) {
		return "", nil, nil, false
	}
	if quoted, ok := bytes.CutPrefix(value, []byte(`"`)); ok {
		text, rest, ok = bytes.Cut(quoted, []byte(`"`))
		if !ok || bytes.HasSuffix(text, []byte(`\`)) {
			return "", nil, nil, false
		}
		return string(name), text, rest, true
	}
	end := 0
	for end < len(value) && httpfield.IsTokenByte(value[end]) {
		end++
	}
	return string(name), value[:end], value[end:], end > 0
}

// checkText makes sure that the part is a plain text field.
func (h *partHead) checkText() error {
	if h.isFile {
		return formErrorf("part %s must not have a file name", QuoteName(h.name))
	}
	if h.contentType == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(h.contentType)
	charset := strings.ToLower(params["charset"])
	if err != nil || media != "text/plain" || charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return formErrorf("part %s must be text/plain in UTF-8", QuoteName(h.name))
	}
	return nil
}
