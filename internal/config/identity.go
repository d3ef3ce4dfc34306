package config

import (
	"strings"
	"time"

	"modelgate/internal/cloudhost"
)

// Identity says where the credential of a provider in your own cloud account
// comes from: exactly one of its keys is set.
type Identity struct {
	// An identity in AWS, with which requests are signed (Signature Version
	// 4). `{}` is what the AWS SDK's default chain finds: environment
	// variables, shared files, web identity (EKS), container (ECS, EKS Pod
	// Identity), instance.
	AWS *AWSIdentity `yaml:"aws"`

	// An identity in Google Cloud. `{}` is the application default
	// credentials.
	Google *GoogleIdentity `yaml:"google"`

	// An identity in Microsoft Entra. `{}` is what the environment names,
	// else workload identity, else managed identity.
	Azure *AzureIdentity `yaml:"azure"`
}

// AWSIdentity is an identity in AWS.
type AWSIdentity struct {
	// Region that requests are signed for. Default: that of a host such as
	// bedrock-runtime.eu-central-1.amazonaws.com; required for others.
	Region string `yaml:"region"`

	// Service that requests are signed for. Default: `bedrock` for hosts that
	// begin with bedrock-runtime, else the first label of an AWS host, such as
	// bedrock-mantle; required for others.
	Service string `yaml:"service"`

	// Profile of the shared configuration files. Excludes access_key_id and
	// web_identity_token_file.
	Profile string `yaml:"profile"`

	// A static key, with secret_access_key beside it.
	AccessKeyID string `yaml:"access_key_id"`

	// The secret of access_key_id.
	SecretAccessKey Secret `yaml:"secret_access_key"`

	// The session token of a temporary access_key_id.
	SessionToken Secret `yaml:"session_token"`

	// File with a token of another issuer that is exchanged for role_arn,
	// relative to the directory of this file.
	WebIdentityTokenFile string `yaml:"web_identity_token_file"`

	// Role that is assumed.
	RoleARN string `yaml:"role_arn"`

	// External id that the role asks for.
	ExternalID string `yaml:"external_id"`

	// Name of the sessions of the role. Default: modelgate.
	SessionName string `yaml:"session_name"`

	// How long a session of the role lasts, from 15m to 12h.
	Duration time.Duration `yaml:"duration"`
}

func (a *AWSIdentity) setDefaults() { a.Duration = time.Hour }

// GoogleIdentity is an identity in Google Cloud.
type GoogleIdentity struct {
	// JSON file of the type service_account, external_account,
	// impersonated_service_account or authorized_user, relative to the
	// directory of this file. It is read again for each token. Default: the
	// application default credentials.
	CredentialsFile string `yaml:"credentials_file"`
}

// AzureIdentity is an identity in Microsoft Entra.
type AzureIdentity struct {
	// Tenant of the application.
	TenantID string `yaml:"tenant_id"`

	// Id of the application, or of a user-assigned managed identity.
	ClientID string `yaml:"client_id"`

	// Secret of the application.
	ClientSecret Secret `yaml:"client_secret"`

	// PEM file with the application's certificate and its private key,
	// relative to the directory of this file.
	CertificateFile string `yaml:"certificate_file"`

	// File with a token of another issuer that the application trusts,
	// relative to the directory of this file.
	FederatedTokenFile string `yaml:"federated_token_file"`

	// Whether it is the managed identity of the machine.
	ManagedIdentity bool `yaml:"managed_identity"`

	// What tokens are for. Default: by the host of base_url, for
	// openai.azure.com, cognitiveservices.azure.com and services.ai.azure.com;
	// required for others.
	Scope string `yaml:"scope"`

	// Where tokens come from; https. Default:
	// https://login.microsoftonline.com/.
	Authority string `yaml:"authority"`
}

// files are the paths that are relative to the configuration's directory.
func (i *Identity) files() (paths []*string) {
	if i == nil {
		return nil
	}
	if i.AWS != nil {
		paths = append(paths, &i.AWS.WebIdentityTokenFile)
	}
	if i.Google != nil {
		paths = append(paths, &i.Google.CredentialsFile)
	}
	if i.Azure != nil {
		paths = append(paths, &i.Azure.CertificateFile, &i.Azure.FederatedTokenFile)
	}
	return paths
}

// checkIdentity wants one complete identity that fits the host, and fills in what
// the host says.
func (p *Provider) checkIdentity(d *document, path string) {
	i, at := p.Identity, path+".identity"
	if i == nil {
		return
	}
	for _, name := range []string{"credential", "credentials", "credential_file", "previous_credentials", "auth"} {
		d.faultIf(d.has(member(path, name)), member(path, name), "excludes identity; keep one of them")
	}
	host := cloudhost.Of(p.BaseURL)
	d.faultIf(strings.HasPrefix(p.BaseURL, "http://") && !loopback(host), path+".base_url", "identity needs https")
	given := 0
	for _, set := range []bool{i.AWS != nil, i.Google != nil, i.Azure != nil} {
		if set {
			given++
		}
	}
	d.faultIf(given != 1, at, "want exactly one of aws, google and azure")
	if i.AWS != nil {
		i.AWS.check(d, at+".aws", host)
	}
	if i.Azure != nil {
		i.Azure.check(d, at+".azure", host)
	}
}

func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

func (a *AWSIdentity) check(d *document, path, host string) {
	service, region, known := cloudhost.AWS(host)
	d.faultIf(known && a.Region != "" && a.Region != region, path+".region", "contradicts base_url, whose host is in %s", region)
	if known && a.Region == "" {
		a.Region = region
	}
	if known && a.Service == "" {
		a.Service = service
	}
	d.faultIf(a.Region == "", path, "needs region: the host of base_url does not say it")
	d.faultIf(a.Service == "", path, "needs service: the host of base_url does not say it")
	ways := 0
	for _, way := range []string{a.Profile, a.AccessKeyID, a.WebIdentityTokenFile} {
		if way != "" {
			ways++
		}
	}
	d.faultIf(ways > 1, path, "want at most one of profile, access_key_id and web_identity_token_file")
	d.faultIf((a.AccessKeyID == "") != a.SecretAccessKey.Empty(), path, "access_key_id and secret_access_key go together")
	d.faultIf(!a.SessionToken.Empty() && a.AccessKeyID == "", path+".session_token", "goes with access_key_id only")
	d.faultIf(a.WebIdentityTokenFile != "" && a.RoleARN == "", path+".web_identity_token_file", "needs role_arn")
	d.faultIf(a.RoleARN == "" && (a.ExternalID != "" || a.SessionName != ""), path, "external_id and session_name go with role_arn only")
	d.faultIf(a.Duration < 15*time.Minute || a.Duration > 12*time.Hour, path+".duration", "must be from 15m to 12h")
	checkSecret(d, path+".secret_access_key", a.SecretAccessKey)
	checkSecret(d, path+".session_token", a.SessionToken)
}

func (a *AzureIdentity) check(d *document, path, host string) {
	if a.Scope == "" {
		a.Scope = cloudhost.AzureScope(host)
	}
	d.faultIf(a.Scope == "", path, "needs scope: the host of base_url does not say it")
	ways := 0
	for _, set := range []bool{!a.ClientSecret.Empty(), a.CertificateFile != "", a.FederatedTokenFile != ""} {
		if set {
			ways++
		}
	}
	d.faultIf(ways > 1 || ways > 0 && a.ManagedIdentity, path, "want at most one of client_secret, certificate_file, federated_token_file and managed_identity")
	d.faultIf(ways > 0 && (a.TenantID == "" || a.ClientID == ""), path, "needs tenant_id and client_id")
	d.faultIf(a.Authority != "" && !strings.HasPrefix(a.Authority, "https://"), path+".authority", "want https://")
	checkURL(d, path+".authority", a.Authority, "*")
	checkSecret(d, path+".client_secret", a.ClientSecret)
}
