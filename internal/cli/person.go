package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/null"
	"modelgate/internal/store/access"
)

// person groups the commands on people who sign in with an account.
func (a *app) person() *cobra.Command {
	return a.group("person", "People who sign in with an account of their company", a.personList(), a.personErase())
}

// personRow is a person as a member of an organization.
type personRow struct {
	PersonID   modelgate.PersonID `json:"person_id"`
	ClientID   modelgate.ClientID `json:"client_id"`
	Email      string             `json:"email"`
	Name       string             `json:"name"`
	Role       modelgate.Role     `json:"role"`
	KeyID      modelgate.KeyID    `json:"api_key_id"`
	CreatedAt  time.Time          `json:"created_at"`
	LastSeenAt time.Time          `json:"last_seen_at"`
}

func (a *app) personList() *cobra.Command {
	var client string
	cmd := a.list("list", "List the members of organizations", func(op *operation) error {
		clients, err := op.clients(client)
		if err != nil {
			return err
		}
		rows := []personRow{}
		for _, c := range clients {
			members, _, err := op.db.Members(op.ctx, c.ID, "", 0)
			if err != nil {
				return err
			}
			for _, m := range members {
				rows = append(rows, personRow{m.PersonID, m.ClientID, m.Person.Email, m.Person.Name, m.Role, m.KeyID, m.CreatedAt, m.Person.LastSeenAt})
			}
		}
		return op.out.table(rows, "ID\tEMAIL\tNAME\tROLE\tCLIENT\tKEY\tLAST SIGN-IN", func(row func(...any)) {
			for _, r := range rows {
				row(r.PersonID, dash(r.Email), dash(r.Name), r.Role, r.ClientID, r.KeyID, stamp(r.LastSeenAt))
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	return cmd
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (a *app) personErase() *cobra.Command {
	return a.operator("erase PERSON", "End a person's memberships, sessions and keys, and forget who it is", func(op *operation) error {
		id := op.args[0]
		in, err := op.db.ErasePerson(op.ctx, modelgate.PersonID(id), func() modelgate.Audit { return audit("person erase", "person.erase", "person", id, nil) })
		if err != nil {
			return err
		}
		value := struct {
			PersonID    modelgate.PersonID   `json:"person_id"`
			Left        []modelgate.ClientID `json:"left"`
			RevokedKeys int                  `json:"revoked_keys"`
		}{in.PersonID, append([]modelgate.ClientID{}, in.Changed...), len(in.Ended)}
		return op.out.table(value, "ID\tLEFT ORGANIZATIONS\tREVOKED KEYS", func(row func(...any)) { row(value.PersonID, len(value.Left), value.RevokedKeys) })
	})
}

// session groups the commands on sessions of the dashboard.
func (a *app) session() *cobra.Command {
	return a.group("session", "Sessions of the dashboard", a.sessionList(), a.sessionRevoke())
}

// sessionRow is a session without what names it in a browser.
type sessionRow struct {
	ID         modelgate.SessionID   `json:"id"`
	Kind       modelgate.SessionKind `json:"kind"`
	ClientID   modelgate.ClientID    `json:"client_id"`
	PersonID   *modelgate.PersonID   `json:"person_id"`
	KeyID      modelgate.KeyID       `json:"api_key_id"`
	UserAgent  string                `json:"user_agent"`
	CreatedAt  time.Time             `json:"created_at"`
	LastSeenAt time.Time             `json:"last_seen_at"`
	ExpiresAt  time.Time             `json:"expires_at"`
}

func (a *app) sessionList() *cobra.Command {
	var client, person string
	cmd := a.list("list", "List sessions, the newest first", func(op *operation) error {
		clients, err := op.clients(client)
		if err != nil {
			return err
		}
		rows := []sessionRow{}
		for _, c := range clients {
			sessions, _, err := op.db.Sessions(op.ctx, c.ID, access.SessionList{SessionOwner: access.SessionOwner{PersonID: modelgate.PersonID(person)}})
			if err != nil {
				return err
			}
			for i := range sessions {
				s := &sessions[i]
				rows = append(rows, sessionRow{s.ID, s.Kind, s.ClientID, null.IfZero(s.PersonID), s.KeyID, s.UserAgent, s.CreatedAt, s.LastSeenAt, s.ExpiresAt})
			}
		}
		return op.out.table(rows, "ID\tKIND\tCLIENT\tPERSON\tKEY\tCREATED\tLAST SEEN\tEXPIRES\tBROWSER", func(row func(...any)) {
			for _, r := range rows {
				row(r.ID, r.Kind, r.ClientID, orDash(r.PersonID, func(id modelgate.PersonID) string { return string(id) }), r.KeyID,
					stamp(r.CreatedAt), stamp(r.LastSeenAt), stamp(r.ExpiresAt), dash(r.UserAgent))
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	cmd.Flags().StringVar(&person, "person", "", "sessions of the person with this `ID` only")
	return cmd
}

func (a *app) sessionRevoke() *cobra.Command {
	var client, id, person string
	var all bool
	cmd := a.operator("revoke", "End sessions; browsers have to sign in again", func(op *operation) error {
		chosen := 0
		for _, is := range []bool{id != "", person != "", all} {
			if is {
				chosen++
			}
		}
		switch {
		case chosen != 1:
			return usageError("want one of --id, --person and --all")
		case all && client != "":
			return usageError("--all is for all organizations: it does not go with --client")
		case all:
			ended, err := op.db.EndAllSessions(op.ctx, audit("session revoke", "session.revoke", "session", "", map[string]any{"all": true}))
			if err != nil {
				return err
			}
			return op.sayRevoked(fmt.Sprintf("%d sessions have ended.", ended))
		case client == "":
			return usageError("needs --client")
		}
		owner, err := op.client(client)
		if err != nil {
			return err
		}
		if id != "" {
			err = op.db.EndSessionByID(op.ctx, owner, modelgate.SessionID(id), access.SessionOwner{}, audit("session revoke", "session.revoke", "session", id, nil))
		} else {
			err = op.db.EndSessionsOfMember(op.ctx, owner, modelgate.PersonID(person), audit("session revoke", "session.revoke", "person", person, nil))
		}
		if err != nil {
			return err
		}
		return op.sayRevoked("The sessions have ended.")
	})
	a.clientFlag(cmd, &client, "with --id and --person: the organization, by `ID or name`")
	cmd.Flags().StringVar(&id, "id", "", "the session with this `ID`")
	cmd.Flags().StringVar(&person, "person", "", "the sessions of the person with this `ID`")
	cmd.Flags().BoolVar(&all, "all", false, "every session, in portals too, as after a restore")
	return cmd
}

// sayRevoked says that a revocation is done.
func (op *operation) sayRevoked(text string) error {
	return op.out.table(map[string]bool{"revoked": true}, "DONE", func(row func(...any)) { row(text) })
}
