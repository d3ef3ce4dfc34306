package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// googleScope is all that a token is asked for; roles decide what it may do.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// Google is an identity in Google Cloud.
type Google struct {
	// CredentialsFile is JSON as Google issues it: a service account's key, the
	// federation of another provider's identities, impersonation, or a user's.
	// "" is the application default credentials.
	CredentialsFile string
	// Project and Location are those of the provider; they tell identities apart.
	Project, Location string
}

// fetcher reads the file again with each fetch.
func (g *Google) fetcher(client *http.Client) fetcher {
	return func(ctx context.Context) (*credential, error) {
		found, source, err := g.credentials(context.WithValue(ctx, oauth2.HTTPClient, client))
		if err != nil {
			return nil, err
		}
		token, err := found.TokenSource.Token()
		if err != nil {
			return nil, err
		}
		c := &credential{bearer: token.AccessToken, source: source, expires: token.Expiry}
		if c.expires.IsZero() {
			c.expires = time.Now().Add(reload)
		}
		return c, nil
	}
}

func (g *Google) credentials(ctx context.Context) (found *google.Credentials, source string, err error) {
	if g.CredentialsFile == "" {
		found, err = google.FindDefaultCredentials(ctx, googleScope)
		return found, "application default credentials", err
	}
	text, err := os.ReadFile(g.CredentialsFile)
	if err != nil {
		return nil, "", err
	}
	var file struct {
		Type google.CredentialsType `json:"type"`
	}
	kinds := []google.CredentialsType{google.ServiceAccount, google.ExternalAccount, google.ImpersonatedServiceAccount, google.AuthorizedUser}
	if json.Unmarshal(text, &file) != nil || !slices.Contains(kinds, file.Type) {
		return nil, "", fmt.Errorf("credentials_file: want JSON with a type of %v", kinds)
	}
	found, err = google.CredentialsFromJSONWithType(ctx, text, file.Type, googleScope)
	return found, string(file.Type), err
}
