package provider

import (
	"context"
	"net/http"
)

// Identity authorizes the requests to a provider in the operator's own cloud
// account. Package cloud has them. It must be safe for concurrent use.
type Identity interface {
	// Authorize signs a request to the provider or sets its token, after all else
	// has been done to it. It may wait some seconds for a credential. Errors:
	// modelgate.ErrCredential, and a bad request for what cannot be signed.
	Authorize(ctx context.Context, req *http.Request, body []byte) error
	// Fingerprint tells identities apart without revealing a secret.
	Fingerprint() string
	// Replied takes each reply, which may refuse the credential.
	Replied(reply *http.Response)
}
