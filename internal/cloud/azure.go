package cloud

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// PublicAuthority is where Microsoft Entra gives tokens unless the configuration
// says otherwise.
const PublicAuthority = "https://login.microsoftonline.com/"

// Azure is an identity in Microsoft Entra. With a client secret, a certificate
// or a federated token it is an application; with ManagedIdentity that of the
// machine. With none of them it is what the environment names, else workload
// identity, else managed identity: never what a developer's tools are logged in to.
type Azure struct {
	TenantID, ClientID string

	ClientSecret       string
	CertificateFile    string // PEM, with its private key
	FederatedTokenFile string
	ManagedIdentity    bool // ClientID picks one that a user assigned

	Scope     string // that tokens are for
	Authority string // https; "" is PublicAuthority
}

// Format prints a placeholder for every verb: there are secrets in it.
func (*Azure) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// ambient reports whether the environment decides which identity it is.
func (a *Azure) ambient() bool {
	return a.ClientSecret == "" && a.CertificateFile == "" && a.FederatedTokenFile == "" && !a.ManagedIdentity
}

// fetcher makes its credential anew with each fetch, because the library would
// answer from a cache of its own.
func (a *Azure) fetcher(client *http.Client) fetcher {
	return func(ctx context.Context) (*credential, error) {
		source, name, err := a.source(client)
		if err != nil {
			return nil, err
		}
		token, err := source.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{a.Scope}})
		if err != nil {
			return nil, err
		}
		c := &credential{bearer: token.Token, source: name, expires: token.ExpiresOn, hint: token.RefreshOn}
		if c.expires.IsZero() {
			c.expires = time.Now().Add(reload)
		}
		return c, nil
	}
}

func (a *Azure) source(client *http.Client) (azcore.TokenCredential, string, error) {
	options := policy.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}
	own := a.Authority != "" && a.Authority != PublicAuthority
	if own {
		options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: a.Authority}
	}
	switch {
	case a.ClientSecret != "":
		c, err := azidentity.NewClientSecretCredential(a.TenantID, a.ClientID, a.ClientSecret,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: own})
		return c, "client secret", err
	case a.CertificateFile != "":
		c, err := a.certificate(&azidentity.ClientCertificateCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: own})
		return c, "certificate", err
	case a.FederatedTokenFile != "":
		c, err := a.workload(options, own)
		return c, "workload identity", err
	case a.ManagedIdentity:
		c, err := a.managed(options)
		return c, "managed identity", err
	}
	c, err := a.chain(options, own)
	return c, "environment", err
}

func (a *Azure) certificate(options *azidentity.ClientCertificateCredentialOptions) (azcore.TokenCredential, error) {
	text, err := os.ReadFile(a.CertificateFile)
	if err != nil {
		return nil, err
	}
	certificates, key, err := azidentity.ParseCertificates(text, nil)
	if err != nil {
		return nil, err
	}
	return azidentity.NewClientCertificateCredential(a.TenantID, a.ClientID, certificates, key, options)
}

func (a *Azure) workload(options policy.ClientOptions, own bool) (azcore.TokenCredential, error) {
	return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientOptions: options, DisableInstanceDiscovery: own,
		TenantID: a.TenantID, ClientID: a.ClientID, TokenFilePath: a.FederatedTokenFile,
	})
}

func (a *Azure) managed(options policy.ClientOptions) (azcore.TokenCredential, error) {
	managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if a.ClientID != "" {
		managed.ID = azidentity.ClientID(a.ClientID)
	}
	return azidentity.NewManagedIdentityCredential(managed)
}

// chain is what the environment has, in order. A source that is not set up is left
// out.
func (a *Azure) chain(options policy.ClientOptions, own bool) (azcore.TokenCredential, error) {
	var sources []azcore.TokenCredential
	environment, err := azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: own})
	if err == nil {
		sources = append(sources, environment)
	}
	if workload, err := a.workload(options, own); err == nil {
		sources = append(sources, workload)
	}
	managed, err := a.managed(options)
	if err != nil {
		return nil, err
	}
	return azidentity.NewChainedTokenCredential(append(sources, managed), nil)
}
