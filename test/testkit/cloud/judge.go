// Package cloud stands in for the clouds of AWS, Google and Azure in tests: token
// services and a judge of signatures, each with a ledger, on loopback.
package cloud

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Judge verifies Signature Version 4, written from AWS's description of it and
// without the SDK.
type Judge struct {
	// Secrets are the secret keys by access key id, and Sessions the tokens that
	// must come with a temporary key.
	Secrets, Sessions map[string]string
	Region, Service   string
	Now               func() time.Time // nil is time.Now
}

// maxSkew is how far the clocks may be apart.
const maxSkew = 5 * time.Minute

// Verify judges a request as it came over the wire. requestURI is the target of
// its request line.
func (j *Judge) Verify(r *http.Request, requestURI string, body []byte) error {
	fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return fmt.Errorf("no signature: %q", r.Header.Get("Authorization"))
	}
	given := make(map[string]string)
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		given[name] = value
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	now := time.Now
	if j.Now != nil {
		now = j.Now
	}
	if skew := now().Sub(at).Abs(); skew > maxSkew {
		return fmt.Errorf("the clocks are %s apart", skew)
	}
	keyID, scope, _ := strings.Cut(given["Credential"], "/")
	day := at.Format("20060102")
	if want := strings.Join([]string{day, j.Region, j.Service, "aws4_request"}, "/"); scope != want {
		return fmt.Errorf("scope %s, want %s", scope, want)
	}
	secret, known := j.Secrets[keyID]
	if !known {
		return fmt.Errorf("unknown access key %s", keyID)
	}
	if token := r.Header.Get("X-Amz-Security-Token"); token != j.Sessions[keyID] {
		return fmt.Errorf("session token %q of %s", token, keyID)
	}
	canonical, err := canonicalRequest(r, requestURI, body, strings.Split(given["SignedHeaders"], ";"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", at.Format("20060102T150405Z"), scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, j.Region, j.Service, "aws4_request", text} {
		key = mac(key, part)
	}
	if want := hex.EncodeToString(key); given["Signature"] != want {
		return fmt.Errorf("signature %s, want %s of\n%s", given["Signature"], want, canonical)
	}
	return nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalRequest is the text that is signed. All headers of AWS's must be.
func canonicalRequest(r *http.Request, requestURI string, body []byte, signed []string) (string, error) {
	path, query, _ := strings.Cut(requestURI, "?")
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if claimed := r.Header.Get("X-Amz-Content-Sha256"); claimed != hash {
		return "", fmt.Errorf("body hash %q, want %s", claimed, hash)
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz") && !slices.Contains(signed, name) {
			return "", fmt.Errorf("header %s is not signed", name)
		}
	}
	if !slices.IsSorted(signed) || !slices.Contains(signed, "host") {
		return "", fmt.Errorf("signed headers %q", signed)
	}
	var headers strings.Builder
	for _, name := range signed {
		values := slices.Clone(r.Header.Values(name))
		if name == "host" {
			values = []string{r.Host}
		}
		for i := range values {
			values[i] = strings.Join(strings.Fields(values[i]), " ")
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(values, ","))
	}
	var pairs [][2]string
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		pairs = append(pairs, [2]string{escape(unescape(name)), escape(unescape(value))})
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) })
	var parameters []string
	for _, pair := range pairs {
		parameters = append(parameters, pair[0]+"="+pair[1])
	}
	segments := strings.Split(path, "/")
	for i := range segments {
		segments[i] = escape(segments[i]) // again: what stands on the wire is escaped once more
	}
	return strings.Join([]string{r.Method, strings.Join(segments, "/"), strings.Join(parameters, "&"), headers.String(),
		strings.Join(signed, ";"), hash}, "\n"), nil
}

func unescape(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return text
	}
	return plain
}

// escape leaves the unreserved characters of RFC 3986 only.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
