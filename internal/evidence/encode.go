package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"modelgate"
)

// maxSafeInteger is the largest integer that every JSON reader keeps exact.
const maxSafeInteger = 1<<53 - 1

// jsonLine writes a value of strings and integers in the form of RFC 8785.
func jsonLine(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	line := jsontext.Value(text)
	err = line.Canonicalize()
	return append(line, '\n'), err
}

// recordForm is a JSON value as records hold it, in the form of RFC 8785. An
// amount, which is a number of a member whose name ends with _usd, becomes text
// with nine decimals. Any other number that is no integer, or one that some
// readers would round, becomes text of its digits, so that no two writers can
// differ in how they print it.
func recordForm(value []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("canonical JSON: more than one value")
	}
	line, err := jsonLine(recordValue("", v))
	return bytes.TrimSuffix(line, []byte{'\n'}), err
}

// recordValue is recordForm of a decoded value, a member with that name where
// it is one.
func recordValue(name string, v any) any {
	switch v := v.(type) {
	case string:
		return cleanText(v)
	case json.Number:
		if usd, err := modelgate.ParseUSD(v.String()); err == nil && strings.HasSuffix(name, "_usd") {
			return string(appendMoney(nil, usd))
		}
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil || n > maxSafeInteger || n < -maxSafeInteger || strings.HasSuffix(name, "_usd") {
			return v.String()
		}
		return n
	case []any:
		for i := range v {
			v[i] = recordValue("", v[i])
		}
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, value := range v {
			object[cleanText(name)] = recordValue(name, value)
		}
		return object
	}
	return v
}

// cleanText replaces what is not UTF-8, and NUL, by U+FFFD, as in the row that
// the text is of.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// plain reports whether a text is ASCII and needs no escapes, as nearly all
// are.
func plain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// appendText appends a clean text as a JSON string in the form of RFC 8785.
func appendText(dst []byte, s string) []byte {
	if !plain(s) {
		dst, _ = jsontext.AppendQuote(dst, cleanText(s)) // fails for what is not UTF-8
		return dst
	}
	return append(append(append(dst, '"'), s...), '"')
}
