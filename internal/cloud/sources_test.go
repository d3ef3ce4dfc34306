package cloud_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelgate/internal/cloud"
	stand "modelgate/test/testkit/cloud"
)

// file writes a file of a test.
func file(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// emptyEnvironment hides what the machine of the test has.
func emptyEnvironment(t *testing.T) {
	t.Helper()
	nowhere := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"HOME": t.TempDir(), "AWS_CONFIG_FILE": nowhere, "AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_EC2_METADATA_DISABLED": "", "GOOGLE_APPLICATION_CREDENTIALS": "", "AZURE_CLIENT_ID": "", "AZURE_TENANT_ID": "", "AZURE_CLIENT_SECRET": "",
	} {
		t.Setenv(name, value)
	}
}

// source is one way to a credential.
type source struct {
	name   string
	config cloud.Config
	env    map[string]string
	asks   string // what the token service was asked last; "" for nothing
	source string // as it is shown
	key    string // the access key of AWS and, unless it came from the token service, its secret
}

func awsSources(t *testing.T, s *stand.TokenService) []source {
	t.Helper()
	aws := func(a cloud.AWS) cloud.Config {
		a.Region, a.Service, a.Duration = "eu-central-1", "bedrock", 3600e9
		return cloud.Config{AWS: &a}
	}
	identity := file(t, "token", []byte(stand.WebIdentity))
	sts := map[string]string{"AWS_ENDPOINT_URL_STS": s.URL}
	shared := file(t, "credentials", []byte("[team]\naws_access_key_id = AKIDTEAM\naws_secret_access_key = canary-shared\n"))
	return []source{
		{"static", aws(cloud.AWS{AccessKeyID: "AKID", SecretAccessKey: "canary-static"}), nil, "", "StaticCredentials", "AKID canary-static"},
		{"profile", aws(cloud.AWS{Profile: "team"}), map[string]string{"AWS_SHARED_CREDENTIALS_FILE": shared}, "", "SharedConfigCredentials: " + shared, "AKIDTEAM canary-shared"},
		{"environment", aws(cloud.AWS{}), map[string]string{"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "canary-env"}, "", "EnvConfigCredentials", "AKIDENV canary-env"},
		{"role", aws(cloud.AWS{AccessKeyID: "AKID", SecretAccessKey: "canary-static", RoleARN: "arn:aws:iam::1:role/r", ExternalID: "x"}), sts, "sts AssumeRole", "AssumeRoleProvider", "ASIAROLE"},
		{"web identity", aws(cloud.AWS{WebIdentityTokenFile: identity, RoleARN: "arn:aws:iam::1:role/r"}), sts, "sts AssumeRoleWithWebIdentity", "WebIdentityCredentials", "ASIAROLE"},
		{"web identity of the environment", aws(cloud.AWS{}), map[string]string{"AWS_ENDPOINT_URL_STS": s.URL,
			"AWS_WEB_IDENTITY_TOKEN_FILE": identity, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}, "sts AssumeRoleWithWebIdentity", "WebIdentityCredentials", "ASIAROLE"},
		{"container", aws(cloud.AWS{}), map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": s.URL + "/container"}, "/container", "CredentialsEndpointProvider", "AKIDMACHINE"},
		{"instance", aws(cloud.AWS{}), map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": s.URL},
			"/latest/meta-data/iam/security-credentials/role", "EC2RoleProvider", "AKIDMACHINE"},
	}
}

func googleSources(t *testing.T, s *stand.TokenService) []source {
	t.Helper()
	google := func(text []byte) cloud.Config {
		return cloud.Config{Google: &cloud.Google{CredentialsFile: file(t, "gcp.json", text)}}
	}
	identity := file(t, "token", []byte(stand.WebIdentity))
	host := strings.TrimPrefix(s.URL, "http://")
	return []source{
		{"service account", google(s.ServiceAccount()), nil, "/google/token", "service_account", ""},
		{"federation", google(s.ExternalAccount(identity, false)), nil, "/google/sts", "external_account", ""},
		{"federation and impersonation", google(s.ExternalAccount(identity, true)), nil, "/google/impersonate:generateAccessToken", "external_account", ""},
		{"impersonation", google(s.Impersonated()), nil, "/google/impersonate:generateAccessToken", "impersonated_service_account", ""},
		{"default file", cloud.Config{Google: &cloud.Google{}}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file(t, "adc.json", s.ServiceAccount())},
			"/google/token", "application default credentials", ""},
		{"metadata", cloud.Config{Google: &cloud.Google{}}, map[string]string{"GCE_METADATA_HOST": host},
			"/computeMetadata/v1/instance/service-accounts/default/token", "application default credentials", ""},
	}
}

func azureSources(t *testing.T, s *stand.TokenService) []source {
	t.Helper()
	ca := file(t, "ca.pem", s.CA)
	azure := func(a cloud.Azure) cloud.Config {
		a.Authority, a.Scope = s.TLS+"/", "https://ai.azure.com/.default"
		return cloud.Config{Azure: &a, CAFile: ca}
	}
	app := cloud.Azure{TenantID: "tenant", ClientID: "client"}
	secret, certificate, federated := app, app, app
	secret.ClientSecret = stand.ClientSecret
	certificate.CertificateFile = file(t, "app.pem", s.Certificate(t))
	federated.FederatedTokenFile = file(t, "token", []byte(stand.WebIdentity))
	managed := map[string]string{"IDENTITY_ENDPOINT": s.URL + "/azure/identity", "IDENTITY_HEADER": "h"}
	return []source{
		{"client secret", azure(secret), nil, "/tenant/oauth2/v2.0/token", "client secret", ""},
		{"certificate", azure(certificate), nil, "/tenant/oauth2/v2.0/token", "certificate", ""},
		{"workload identity", azure(federated), nil, "/tenant/oauth2/v2.0/token", "workload identity", ""},
		{"managed identity", azure(cloud.Azure{ManagedIdentity: true}), managed, "/azure/identity", "managed identity", ""},
		{"environment secret", azure(cloud.Azure{}), map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": stand.ClientSecret},
			"/tenant/oauth2/v2.0/token", "environment", ""},
		{"environment managed identity", azure(cloud.Azure{}), managed, "*", "environment", ""}, // the library may have it from the source before
	}
}

// authorized judges a request as the cloud would.
func (s *source) authorized(service *stand.TokenService, req *http.Request, body string) error {
	issued := service.Issued()
	if s.config.AWS == nil {
		if token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "); !service.Valid(token) {
			return fmt.Errorf("token %q was not given out", token)
		}
		return nil
	}
	key, secret, static := strings.Cut(s.key, " ")
	judge := stand.Judge{Secrets: map[string]string{key: secret}, Region: s.config.AWS.Region, Service: s.config.AWS.Service}
	if !static {
		secret = issued[len(issued)-1]
		judge.Secrets[key], judge.Sessions = secret, map[string]string{key: "session-" + secret}
	}
	return judge.Verify(req, req.URL.RequestURI(), []byte(body))
}

// Every source leads to a request that the cloud accepts, and nothing of its
// credential is logged.
func TestSources(t *testing.T) {
	service := stand.NewTokenService(t)
	for _, s := range append(append(awsSources(t, service), googleSources(t, service)...), azureSources(t, service)...) {
		t.Run(s.name, func(t *testing.T) {
			emptyEnvironment(t)
			for name, value := range s.env {
				t.Setenv(name, value)
			}
			var logged bytes.Buffer
			s.config.Provider = "p"
			identity, err := cloud.New(s.config, slog.New(slog.NewTextHandler(&logged, nil)))
			if err != nil {
				t.Fatal(err)
			}
			before := len(service.Ledger())
			req, _ := http.NewRequest(http.MethodPost, "https://bedrock-runtime.eu-central-1.amazonaws.com/model/m/converse", nil)
			if err := identity.Authorize(t.Context(), req, []byte("{}")); err != nil {
				t.Fatalf("Authorize: %v; log: %s", err, &logged)
			}
			asked := service.Ledger()[before:]
			if s.asks != "*" && s.asks != "" && (len(asked) == 0 || asked[len(asked)-1] != s.asks) || s.asks == "" && len(asked) > 0 {
				t.Errorf("the token service was asked %q, want %q last", asked, s.asks)
			}
			if err := s.authorized(service, req, "{}"); err != nil {
				t.Error(err)
			}
			status := identity.Check(t.Context())
			if status.Err != nil || status.Source != s.source {
				t.Errorf("Check: source %q, error %v, want %q", status.Source, status.Err, s.source)
			}
			if shown := fmt.Sprintf("%+v %v %s", status, s.config.AWS, &logged); strings.Contains(shown, "canary") {
				t.Errorf("a secret is shown: %s", shown)
			}
		})
	}
}

// A refused or broken answer is an error without any of its text.
func TestSourceErrors(t *testing.T) {
	service := stand.NewTokenService(t)
	wrong := file(t, "token", []byte("canary-wrong-token-of-another"))
	ca := file(t, "ca.pem", service.CA)
	aws := &cloud.AWS{Region: "r", Service: "s", Duration: 3600e9, WebIdentityTokenFile: wrong, RoleARN: "arn:aws:iam::1:role/r"}
	right := &cloud.AWS{Region: "r", Service: "s", Duration: 3600e9, WebIdentityTokenFile: file(t, "token", []byte(stand.WebIdentity)), RoleARN: "arn:aws:iam::1:role/r"}
	azure := &cloud.Azure{TenantID: "tenant", ClientID: "c", ClientSecret: "canary-wrong", Authority: service.TLS + "/", Scope: "s"}
	google := &cloud.Google{CredentialsFile: file(t, "g.json", service.ExternalAccount(wrong, false))}
	account := &cloud.Google{CredentialsFile: file(t, "g.json", service.ServiceAccount())}
	for _, c := range []struct {
		name   string
		config cloud.Config
		fault  stand.Fault
		want   string
	}{
		{"AWS refuses", cloud.Config{AWS: aws}, stand.None, "InvalidIdentityToken"},
		{"Azure refuses", cloud.Config{Azure: azure, CAFile: ca}, stand.None, "answered 401"},
		{"Google refuses", cloud.Config{Google: google}, stand.None, "400"},
		{"missing file", cloud.Config{Google: &cloud.Google{CredentialsFile: "/nowhere.json"}}, stand.None, "no such file"},
		{"file of another kind", cloud.Config{Google: &cloud.Google{CredentialsFile: file(t, "x.json", []byte(`{"type":"canary"}`))}}, stand.None, "want JSON with a type"},
		{"error", cloud.Config{Google: account}, stand.Error, "answered 500"},
		{"page", cloud.Config{Google: account}, stand.Garbage, ""},
		{"long answer", cloud.Config{Google: account}, stand.Huge, ""},
		{"expired credential", cloud.Config{AWS: right}, stand.Expired, "has expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			emptyEnvironment(t)
			t.Setenv("AWS_ENDPOINT_URL_STS", service.URL)
			service.Break(func(int) stand.Fault { return c.fault })
			identity, err := cloud.New(c.config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			status := identity.Check(t.Context())
			if status.Err == nil || !strings.Contains(status.Err.Error(), c.want) || strings.Contains(status.Err.Error(), "canary") {
				t.Errorf("Check: %v, want an error with %q", status.Err, c.want)
			}
		})
	}
}
