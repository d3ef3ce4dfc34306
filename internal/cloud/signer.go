package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"modelgate"
	"modelgate/internal/httpfield"
)

// signer signs requests with AWS Signature Version 4.
type signer struct {
	v4              *v4.Signer
	service, region string
	now             func() time.Time
}

func newSigner(service, region string, now func() time.Time) *signer {
	return &signer{v4.NewSigner(), service, region, now}
}

// sign computes the signature on a request of its own and takes it over. It covers
// the path, the query, the body and the few headers that decide something, so that
// nothing which a proxy or the HTTP client adds later can break it.
func (s *signer) sign(c *credential, req *http.Request, body []byte) error {
	if presigned(req.URL.RawQuery) {
		return modelgate.Errorf(modelgate.BadRequest, "query parameters that begin with x-amz- are those of a signature; leave them out")
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	address := *req.URL
	scratch := &http.Request{Method: req.Method, URL: &address, Host: req.Host, Header: http.Header{"X-Amz-Content-Sha256": {hash}}}
	for name, values := range req.Header {
		if name == "Content-Type" || strings.HasPrefix(name, "X-Amzn-") {
			scratch.Header[name] = values
		}
	}
	if err := s.v4.SignHTTP(context.Background(), c.keys, scratch, hash, s.service, s.region, s.now()); err != nil {
		return err
	}
	for name, values := range scratch.Header {
		req.Header[name] = values
	}
	req.URL.RawQuery, req.Host = address.RawQuery, scratch.Host
	return nil
}

// presigned reports whether a query has a parameter of a signature.
func presigned(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		name := httpfield.UnescapeQuery(pair)
		if len(name) >= 6 && strings.EqualFold(name[:6], "x-amz-") {
			return true
		}
	}
	return false
}
