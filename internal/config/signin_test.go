package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/config"
)

const signInBase = `server: {base_url: "https://gw.test"}
sign_in:
  providers:
    - {name: corp, label: Acme SSO, issuer: "https://idp.test", client_id: modelgate, organizations: [{organization: 0192f000-0000-7000-8000-000000000001, group: ops, role: admin}]`

func TestSignInFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Replace(signInBase, "server: {base_url: \"https://gw.test\"}\n", "", 1) + "}":                       "needs server.base_url",
		strings.Replace(signInBase, "name: corp", "name: Corp", 1) + "}":                                            "1 to 32 characters",
		strings.Replace(signInBase, "label: Acme SSO, ", "", 1) + "}":                                               "label: is missing",
		strings.Replace(signInBase, "https://idp.test", "http://idp.test", 1) + "}":                                 "want https",
		strings.Replace(signInBase, "https://idp.test", "ldap://idp.test", 1) + "}":                                 "want http:// or https://",
		strings.Replace(signInBase, "https://idp.test", "https://idp.test?x=1", 1) + "}":                            "must not have a user, a query or a fragment",
		strings.Replace(signInBase, "client_id: modelgate, ", "", 1) + "}":                                          "client_id: is missing",
		strings.Replace(signInBase, "role: admin", "role: root", 1) + "}":                                           "want one of owner, admin, billing, developer, viewer",
		strings.Replace(signInBase, "0192f000-0000-7000-8000-000000000001", "acme", 1) + "}":                        "want the id of an organization",
		strings.Replace(signInBase, "group: ops, ", "", 1) + "}":                                                    "group: is missing",
		signInBase + ", domains: [\"@example.com\"]}":                                                               "want a domain",
		signInBase + ", scopes: [\"a b\"]}":                                                                         "is no scope",
		signInBase + ", max_age: 721h}":                                                                             "from 0 to 720h",
		signInBase + ", client_secret: \"hidden-\\u0007\"}":                                                         "control characters",
		signInBase + "}\n    - {name: corp, label: B, issuer: \"https://b.test\", client_id: c, organizations: []}": "both are unique",
		signInBase + "}\n    - {name: b, label: B, issuer: \"https://idp.test\", client_id: c, organizations: []}":  "both are unique",
		signInBase + "}\n  idle: 1m":                                                                                "sign_in.idle: must be from 5m to 168h",
		signInBase + "}\n  key_session: 25h":                                                                        "sign_in.key_session: must be from 15m to 24h",
		signInBase + ", client_secret: x, client_secret_file: y}":                                                   "client_secret_file: excludes client_secret",
		signInBase + "}\n  absolute: 200h":                                                                          "sign_in.absolute: must be from 15m to 168h",
		signInBase + "}\noperator: {sign_in: none, base_url: \"https://ops.test\"}":                                 "operator.sign_in: want the name of one of sign_in.providers",
		signInBase + "}\noperator: {sign_in: corp}":                                                                 "needs operator.base_url",
		signInBase + "}\noperator: {roles: [{group: a, role: root}]}":                                               "want one of admin, finance, support, auditor",
		signInBase + "}\noperator: {roles: [{role: admin}]}":                                                        "group: is missing",
		signInBase + "}\noperator: {idle: 13h}":                                                                     "operator.idle: must be from 5m to 12h",
		signInBase + "}\noperator: {absolute: 25h}":                                                                 "operator.absolute: must be from 15m to 24h",
		signInBase + ", claim: {}}":                                                                                 "unknown key",
	} {
		got := strings.Join(check(t, text+"\n"), "\n")
		if !strings.Contains(got, want) || strings.Contains(got, "hidden-") {
			t.Errorf("%s:\n%s, want %q", text, got, want)
		}
	}
}

func TestSignInDefaults(t *testing.T) {
	t.Parallel()
	path := write(t, signInBase+", ca_file: ca.pem}\n    - {name: b, label: B, issuer: \"http://127.0.0.1:9/x\", client_id: c}\n")
	cfg, err := config.Load(path, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	p := cfg.SignIn.Providers[0]
	if p.Claims != (config.SignInClaims{Email: "email", EmailVerified: "email_verified", Name: "name", Groups: "groups"}) ||
		strings.Join(p.Scopes, " ") != "openid email profile" || p.CAFile != filepath.Join(filepath.Dir(path), "ca.pem") ||
		p.Organizations[0].Role != modelgate.RoleAdmin || cfg.SignIn.Idle != 12*time.Hour || cfg.SignIn.Absolute != 24*time.Hour {
		t.Errorf("%+v", cfg.SignIn)
	}
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].String(), "nobody can sign in") {
		t.Errorf("warnings %v", cfg.Warnings)
	}
}
