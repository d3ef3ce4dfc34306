package server

import (
	"context"
	"log/slog"

	"modelgate/internal/cloud"
	"modelgate/internal/config"
)

// identityConfigs are the identities of a configuration's providers.
func identityConfigs(cfg *config.Config) (list []cloud.Config) {
	for i := range cfg.Providers {
		p := &cfg.Providers[i]
		if p.Identity == nil {
			continue
		}
		c := cloud.Config{Provider: p.Name, CAFile: p.CAFile}
		switch {
		case p.Identity.AWS != nil:
			a := p.Identity.AWS
			c.AWS = &cloud.AWS{
				Region: a.Region, Service: a.Service, Profile: a.Profile,
				AccessKeyID: a.AccessKeyID, SecretAccessKey: a.SecretAccessKey.Reveal(), SessionToken: a.SessionToken.Reveal(),
				WebIdentityTokenFile: a.WebIdentityTokenFile,
				RoleARN:              a.RoleARN, ExternalID: a.ExternalID, SessionName: a.SessionName, Duration: a.Duration,
			}
		case p.Identity.Google != nil:
			c.Google = &cloud.Google{CredentialsFile: p.Identity.Google.CredentialsFile}
		default:
			a := p.Identity.Azure
			c.Azure = &cloud.Azure{
				TenantID: a.TenantID, ClientID: a.ClientID, ClientSecret: a.ClientSecret.Reveal(),
				CertificateFile: a.CertificateFile, FederatedTokenFile: a.FederatedTokenFile,
				ManagedIdentity: a.ManagedIdentity, Scope: a.Scope, Authority: a.Authority,
			}
		}
		list = append(list, c)
	}
	return list
}

// CheckIdentities fetches one credential for each provider with an identity, or
// for the one that is named, and says what came of it.
func CheckIdentities(ctx context.Context, cfg *config.Config, name string) (list []cloud.Status, err error) {
	for _, c := range identityConfigs(cfg) {
		if name != "" && c.Provider != name {
			continue
		}
		identity, err := cloud.New(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		list = append(list, identity.Check(ctx))
	}
	return list, nil
}
