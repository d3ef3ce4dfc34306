package store

import (
	"slices"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
)

// anna is a person; n numbers the ids that a new one takes.
func anna(n int) modelgate.Person {
	return modelgate.Person{
		ID: modelgate.PersonID(id(n)), Issuer: "https://idp.test", Subject: "anna", Email: "anna@example.com", Name: "Anna", LastSeenAt: noon,
	}
}

// membership is one with a fresh key, the n-th.
func membership(client modelgate.ClientID, role modelgate.Role, n int) access.Membership {
	return access.Membership{ClientID: client, Role: role, Key: access.MemberKey{ID: uuid(n), Prefix: "gw_live_00000000", Digest: digest(n)}}
}

// TestMembersFollowTheRules: each sign-in makes memberships, and the rights of
// their hidden keys, what is asked for.
func TestMembersFollowTheRules(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		acme, other := createClient(t, db, 1), createClient(t, db, 2)
		begin := func() modelgate.Audit { return audit("test") }
		signIn := func(n int, want ...access.Membership) access.SignedIn {
			t.Helper()
			in, err := db.SignIn(ctx, anna(n), want, begin)
			must(t, err)
			return in
		}
		scopes := func(d modelgate.Digest) []modelgate.Scope {
			c, err := db.Caller(ctx, d, nil)
			if modelgate.KindOf(err) == modelgate.Unauthorized {
				return nil
			}
			must(t, err)
			return c.Scopes
		}
		control := func() int64 { v, err := db.ControlVersion(ctx); must(t, err); return v }

		in := signIn(100, membership(acme, modelgate.RoleDeveloper, 101), membership("00000000-0000-0000-0000-000000000000", modelgate.RoleOwner, 102))
		if in.PersonID != modelgate.PersonID(id(100)) || len(in.Members) != 1 || len(in.Unknown) != 1 || in.Members[0].KeyID != modelgate.KeyID(id(101)) {
			t.Fatalf("first: %+v", in)
		}
		if got := scopes(digest(101)); !slices.Equal(got, modelgate.RoleDeveloper.Scopes()) {
			t.Errorf("a developer has %v", got)
		}
		keys, _, err := db.Keys(ctx, acme, access.KeyList{})
		if err != nil || len(keys) != 1 || keys[0].Owner != in.PersonID || keys[0].Kind != modelgate.KeyDashboard || keys[0].Name != "anna@example.com" {
			t.Errorf("%+v, %v", keys, err)
		}

		// Nothing has changed: nothing is raised.
		before := control()
		if in = signIn(110, membership(acme, modelgate.RoleDeveloper, 111)); in.PersonID != modelgate.PersonID(id(100)) || len(in.Changed) != 0 || control() != before {
			t.Errorf("again: %+v", in)
		}
		// Another role, and another organization.
		in = signIn(120, membership(other, modelgate.RoleViewer, 121), membership(acme, modelgate.RoleAdmin, 122))
		if len(in.Members) != 2 || in.Members[0].ClientID != other || control() == before {
			t.Errorf("more: %+v", in)
		}
		if got := scopes(digest(101)); !slices.Equal(got, modelgate.AllScopes()) {
			t.Errorf("an admin has %v", got)
		}
		list, err := db.OrganizationsOf(ctx, in.PersonID)
		if err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}

		// An admin revokes the hidden key; the next sign-in brings another.
		_, err = db.RevokeKey(ctx, other, access.KeyScope{}, modelgate.KeyID(id(121)), begin())
		must(t, err)
		in = signIn(130, membership(other, modelgate.RoleViewer, 131), membership(acme, modelgate.RoleAdmin, 132))
		if scopes(digest(121)) != nil || !slices.Equal(scopes(digest(131)), modelgate.RoleViewer.Scopes()) || in.Members[0].KeyID != modelgate.KeyID(id(131)) {
			t.Errorf("after a revocation: %+v", in)
		}

		// A membership that ends takes its key and its sessions along.
		s := personSession(in.Members[1], 300)
		must(t, db.StartSession(ctx, s, digest(300)))
		found, err := db.Session(ctx, digest(300))
		if err != nil || found.PersonID != in.PersonID || found.Role != modelgate.RoleAdmin || found.Key != digest(101) || found.Provider != "corp" {
			t.Errorf("%+v, %v", found, err)
		}
		in = signIn(140, membership(other, modelgate.RoleViewer, 141))
		if len(in.Ended) != 1 || in.Ended[0] != digest(101) || scopes(digest(101)) != nil {
			t.Errorf("left: %+v", in)
		}
		_, err = db.Session(ctx, digest(300))
		wantKind(t, "a session of a member that left", err, modelgate.Unauthorized)

		// A suspended organization is none to be in.
		must(t, db.UpdateClient(ctx, other, func(c *modelgate.Client) error { c.Status = modelgate.ClientSuspended; return nil }, audit("test")))
		if in = signIn(145, membership(other, modelgate.RoleViewer, 146)); len(in.Members) != 0 || number(t, db, "SELECT COUNT(*) FROM member") != 1 {
			t.Errorf("suspended: %+v", in)
		}
		_, err = db.ErasePerson(ctx, in.PersonID, begin)
		must(t, err)
		if scopes(digest(131)) != nil || number(t, db, "SELECT COUNT(*) FROM member") != 0 || number(t, db, "SELECT COUNT(*) FROM api_key WHERE name <> ''") != 0 {
			t.Error("an erased person has a membership, or a name")
		}
		p, err := db.Person(ctx, in.PersonID)
		if err != nil || p.Email+p.Name+p.Issuer != "" || p.Subject != string(in.PersonID) {
			t.Errorf("%+v, %v", p, err)
		}
		if in = signIn(150, membership(acme, modelgate.RoleViewer, 151)); in.PersonID != modelgate.PersonID(id(150)) {
			t.Error("an erased person is known again")
		}
		_, err = db.ErasePerson(ctx, "none", begin)
		wantKind(t, "an unknown person", err, modelgate.NotFound)
	})
}

func personSession(m modelgate.Member, n int) modelgate.Session {
	at := noon.Add(time.Duration(n) * time.Second)
	return modelgate.Session{
		ID: modelgate.SessionID(id(n)), Kind: modelgate.PersonSession, Place: "dashboard", ClientID: m.ClientID, KeyID: m.KeyID, PersonID: m.PersonID,
		Provider: "corp", ProviderSession: "sid-" + id(n), UserAgent: "test", Idle: time.Hour, CreatedAt: at, LastSeenAt: at, ExpiresAt: at.Add(8 * time.Hour),
	}
}

// TestHiddenKeysFollowTheCeiling: what a member may do is what the organization's
// ceiling is now, and its key counts towards no bound.
func TestHiddenKeysFollowTheCeiling(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		acme := createClient(t, db, 1)
		_, err := db.SignIn(ctx, anna(100), []access.Membership{membership(acme, modelgate.RoleOwner, 101)}, func() modelgate.Audit { return audit("test") })
		must(t, err)
		ceiling := modelgate.Ceiling{MaxScopes: []modelgate.Scope{modelgate.StatsRead, modelgate.InferenceUse}, Entitlements: modelgate.Entitlements{
			{Effect: modelgate.Allow, Axis: modelgate.AxisProvider, Provider: "openai", ModelPattern: "*"},
			{Effect: modelgate.Deny, Axis: modelgate.AxisProvider, Provider: "mistral", ModelPattern: "*"},
		}}
		must(t, db.UpdateClient(ctx, acme, func(c *modelgate.Client) error { c.Ceiling = ceiling; return nil }, audit("test")))
		c, err := db.Caller(ctx, digest(101), nil)
		must(t, err)
		if c.Has(modelgate.KeysManage) || !c.Has(modelgate.InferenceUse) || len(c.Entitlements) != 2 || len(c.Denies) != 1 {
			t.Errorf("%v %v %v", c.Scopes, c.Entitlements, c.Denies)
		}
		if live := number(t, db, "SELECT COUNT(*) FROM api_key WHERE kind = 'key'"); live != 0 {
			t.Errorf("%d keys count", live)
		}
		again, err := db.Caller(ctx, digest(101), &c)
		if err != nil || len(again.Entitlements) != 2 {
			t.Errorf("seen before: %v, %v", again.Entitlements, err)
		}
	})
}

// TestProvidersEndSessions: by the session that a token names, by the account,
// and once for each token.
func TestProvidersEndSessions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		acme := createClient(t, db, 1)
		begin := func() modelgate.Audit { return audit("test") }
		in, err := db.SignIn(ctx, anna(100), []access.Membership{membership(acme, modelgate.RoleOwner, 101)}, begin)
		must(t, err)
		start := func(ns ...int) {
			for _, n := range ns {
				must(t, db.StartSession(ctx, personSession(in.Members[0], n), digest(n)))
			}
		}
		live := func(n int) bool { _, err := db.Session(ctx, digest(n)); return err == nil }
		version := func() int64 { v, err := db.SessionVersion(ctx); must(t, err); return v }
		logout := func(token, session, subject string) {
			must(t, db.EndSessionsOfProvider(ctx, access.Logout{Issuer: "https://idp.test", TokenID: token, Session: session, Subject: subject, Expires: noon.Add(time.Hour)}))
		}
		start(300, 301, 302)
		before := version()
		logout("a", "sid-"+id(300), "")
		if live(300) || !live(301) || version() == before {
			t.Error("a session by its name")
		}
		start(300)
		logout("a", "sid-"+id(300), "")
		if !live(300) {
			t.Error("a token counts twice")
		}
		logout("b", "sid-"+id(300), "bob")
		logout("c", "", "bob")
		must(t, db.EndSessionsOfProvider(ctx, access.Logout{Issuer: "https://other.test", TokenID: "d", Subject: "anna", Expires: noon.Add(time.Hour)}))
		if !live(300) || !live(301) {
			t.Error("somebody else's session ends")
		}
		logout("e", "", "anna")
		if live(300) || live(301) || live(302) {
			t.Error("an account's sessions go on")
		}

		start(310, 311, 312)
		listed, more, err := db.Sessions(ctx, acme, access.SessionList{Limit: 2})
		if err != nil || !more || len(listed) != 2 || listed[0].ID != modelgate.SessionID(id(312)) {
			t.Errorf("%v, %v, %v", listed, more, err)
		}
		must(t, db.EndSessionByID(ctx, acme, modelgate.SessionID(id(312)), access.SessionOwner{}, begin()))
		wantKind(t, "again", db.EndSessionByID(ctx, acme, modelgate.SessionID(id(312)), access.SessionOwner{}, begin()), modelgate.NotFound)
		wantKind(t, "another organization's", db.EndSessionByID(ctx, createClient(t, db, 2), modelgate.SessionID(id(311)), access.SessionOwner{}, begin()), modelgate.NotFound)
		wantKind(t, "another person's", db.EndSessionByID(ctx, acme, modelgate.SessionID(id(311)), access.SessionOwner{PersonID: "x"}, begin()), modelgate.NotFound)
		wantKind(t, "of who is not a member", db.EndSessionsOfMember(ctx, acme, "x", begin()), modelgate.NotFound)
		must(t, db.EndSessionsOfMember(ctx, acme, in.PersonID, begin()))
		if live(310) || live(311) || live(312) {
			t.Error("sessions that were ended go on")
		}
		start(320)
		if ended, err := db.EndAllSessions(ctx, begin()); err != nil || ended != 1 || live(320) {
			t.Errorf("%d ended, %v", ended, err)
		}
		members, _, err := db.Members(ctx, acme, "", 10)
		if err != nil || len(members) != 1 || members[0].Person.Email != "anna@example.com" || members[0].Role != modelgate.RoleOwner {
			t.Errorf("%+v, %v", members, err)
		}
	})
}

// TestMembersAreChanged: an administrator gives roles and ends memberships; an
// organization keeps an owner while it has members.
func TestMembersAreChanged(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		acme := createClient(t, db, 1)
		begin := func() modelgate.Audit { return audit("test") }
		enter := func(subject string, n int, role modelgate.Role) modelgate.PersonID {
			t.Helper()
			p := anna(n)
			p.Subject, p.Email = subject, subject+"@example.com"
			in, err := db.SignIn(ctx, p, []access.Membership{membership(acme, role, n+1)}, begin)
			must(t, err)
			return in.PersonID
		}
		owner, viewer := enter("olga", 100, modelgate.RoleOwner), enter("vera", 200, modelgate.RoleViewer)
		change := func(id modelgate.PersonID, role modelgate.Role, judged error) error {
			_, err := db.ChangeMember(ctx, acme, id, access.MemberChange{
				Role: role, Key: membership(acme, role, 300).Key, Audit: begin, Judge: func(access.PersonMember) error { return judged },
			})
			return err
		}
		wantKind(t, "nobody", change("x", modelgate.RoleAdmin, nil), modelgate.NotFound)
		wantKind(t, "refused", change(viewer, modelgate.RoleAdmin, errLocked), modelgate.Conflict)
		for _, role := range []modelgate.Role{"", modelgate.RoleAdmin} {
			wantKind(t, "the last owner", change(owner, role, nil), modelgate.Conflict)
		}
		must(t, change(viewer, modelgate.RoleAdmin, nil))
		c, err := db.Caller(ctx, digest(201), nil)
		if err != nil || c.Role != modelgate.RoleAdmin || c.PersonID != viewer || len(c.Scopes) != 3 || c.Actor() != (modelgate.Actor{PersonID: viewer}) {
			t.Errorf("%+v, %v", c, err)
		}
		must(t, change(viewer, modelgate.RoleOwner, nil))
		before, err := db.ControlVersion(ctx)
		must(t, err)
		must(t, change(owner, "", nil))
		if _, err := db.Caller(ctx, digest(101), nil); modelgate.KindOf(err) != modelgate.Unauthorized {
			t.Errorf("who was removed: %v", err)
		}
		if after, err := db.ControlVersion(ctx); err != nil || after == before {
			t.Errorf("other instances are not told: %v", err)
		}
		must(t, change(viewer, "", nil)) // nobody is left
		if members, _, err := db.Members(ctx, acme, "", 10); err != nil || len(members) != 0 {
			t.Errorf("%+v, %v", members, err)
		}
	})
}

var errLocked = modelgate.Errorf(modelgate.Conflict, "refused")
