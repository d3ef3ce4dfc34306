package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"modelgate/internal/server"
)

// provider groups the commands on providers.
func (a *app) provider() *cobra.Command {
	return a.group("provider", "Providers", a.providerCheck())
}

// identityCheck is what a check of one identity found.
type identityCheck struct {
	Provider  string     `json:"provider"`
	Kind      string     `json:"kind"`
	Source    string     `json:"source,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Error     string     `json:"error,omitempty"`
}

func (a *app) providerCheck() *cobra.Command {
	var name string
	cmd := a.configured("check", "Fetch a credential for each provider with an identity", func(op *operation) error {
		found, err := server.CheckIdentities(op.ctx, op.cfg, name)
		if err != nil {
			return err
		}
		if name != "" && len(found) == 0 {
			return fmt.Errorf("no provider called %q has an identity", name)
		}
		checks, failed := make([]identityCheck, len(found)), false
		for i, s := range found {
			checks[i] = identityCheck{Provider: s.Provider, Kind: s.Kind, Source: s.Source}
			if !s.ExpiresAt.IsZero() {
				at := s.ExpiresAt.UTC().Truncate(time.Second)
				checks[i].ExpiresAt = &at
			}
			if s.Err != nil {
				checks[i].Error, failed = s.Err.Error(), true
			}
		}
		err = op.out.table(checks, "PROVIDER\tKIND\tSOURCE\tEXPIRES\tERROR", func(row func(cells ...any)) {
			for _, c := range checks {
				expires := "never"
				switch {
				case c.Error != "":
					expires = ""
				case c.ExpiresAt != nil:
					expires = c.ExpiresAt.Format(time.RFC3339)
				}
				row(c.Provider, c.Kind, c.Source, expires, c.Error)
			}
		})
		if err == nil && failed {
			return errQuiet
		}
		return err
	})
	cmd.Long = "Fetch a credential for each provider with an identity, and show where it came from and when it expires. No model is called. The exit code is 1 if one cannot be fetched."
	cmd.Flags().StringVar(&name, "name", "", "only the provider of this `NAME`")
	return cmd
}
