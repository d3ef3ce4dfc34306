package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

// open opens the books' database for what no command creates.
func (b *books) open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + b.dir + "/modelgate.db", Mode: store.Shared})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // nothing depends on it any more
	return db
}

// customer creates a sub-account, as its organization does over HTTP.
func (b *books) customer(t *testing.T, slug string) modelgate.SubAccount {
	t.Helper()
	account := modelgate.SubAccount{
		ID: modelgate.SubAccountID(b.ids.New().String()), ClientID: b.client, Slug: slug, Name: "Bäckerei 東京",
		Status: modelgate.SubAccountActive, CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	if err := b.open(t).CreateSubAccount(t.Context(), account, audit("test", "sub_account.create", "sub_account", string(account.ID), nil)); err != nil {
		t.Fatal(err)
	}
	return account
}

// TestLists prints each list empty and filled, as a table, as JSON and as CSV.
func TestLists(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	empty := newEmptyBooks(t)
	account := b.customer(t, "bakery")
	for _, tt := range []struct {
		args   []string
		head   string // of the table
		column string // of the CSV
		want   string // in every form
		empty  string // the first list of empty books as JSON
	}{
		{[]string{"client", "list"}, "ID NAME STATUS ROUTING BILLING MAX KEYS CREATED", "name", "acme", "[]"},
		{[]string{"key", "list"}, "ID NAME PREFIX STATUS CLIENT SUB ACCOUNT CREATED LAST USED EXPIRES", "id", string(b.key), "[]"},
		{[]string{"key", "list", "--client", "acme", "--status", "active"}, "ID NAME PREFIX STATUS CLIENT SUB ACCOUNT CREATED LAST USED EXPIRES", "id", string(b.key), ""},
		{[]string{"subaccount", "list"}, "ID CLIENT SLUG NAME STATUS MARKUP PCT MAX KEYS CREATED", "name", account.Name, "[]"},
		{[]string{"subaccount", "list", "--client", "acme"}, "ID CLIENT SLUG NAME STATUS MARKUP PCT MAX KEYS CREATED", "slug", "bakery", ""},
		{[]string{"audit", "list"}, "AT ACTION BY TARGET CLIENT", "action", "key.issue", "[]"},
		{[]string{"ceiling", "show", "--client", "acme"}, "AXIS PROVIDER MODEL PATTERN EFFECT", "effect", "allow", ""},
		{[]string{"budget", "list"}, "CLIENT SCOPE ID PERIOD MATCH MODE OWNER LIMIT USD SPENT RESERVED", "client", "", "[]"},
		{[]string{"job", "list"}, "TASK ID STATUS CLIENT PROVIDER MODEL PROVISIONAL USD FINAL USD CREATED", "task_id", "", "[]"},
	} {
		name := strings.Join(tt.args, " ")
		table := b.command(t, exitOK, nil, tt.args...)
		head, rows, _ := strings.Cut(table, "\n")
		if got := strings.Join(strings.Fields(head), " "); got != tt.head || !strings.Contains(rows, tt.want) || (rows == "") != (tt.want == "") {
			t.Errorf("%s printed\n%s", name, table)
		}
		var value any
		b.command(t, exitOK, &value, tt.args...)
		if text, _ := json.Marshal(value); !strings.Contains(string(text), tt.want) {
			t.Errorf("%s --json printed %s", name, text)
		}
		records, err := csv.NewReader(strings.NewReader(b.command(t, exitOK, nil, append(tt.args, "--csv")...))).ReadAll()
		if err != nil || !strings.Contains(strings.Join(records[0], ","), tt.column) || (len(records) > 1) != (tt.want != "") {
			t.Errorf("%s --csv printed %v, %v", name, records, err)
		}
		if tt.empty == "" {
			continue
		}
		var none json.RawMessage
		empty.command(t, exitOK, &none, tt.args...)
		if string(none) != tt.empty {
			t.Errorf("%s --json of empty books printed %s, want %s", name, none, tt.empty)
		}
		if lines := strings.Count(empty.command(t, exitOK, nil, tt.args...), "\n"); lines != 1 {
			t.Errorf("%s of empty books printed %d lines, want the head alone", name, lines)
		}
	}
}

// newEmptyBooks is a database with nothing in it.
func newEmptyBooks(t *testing.T) *books {
	t.Helper()
	b := &books{dir: t.TempDir()}
	b.config = b.dir + "/modelgate.yaml"
	if err := os.WriteFile(b.config, []byte("server: {data_dir: .}\ndatabase: {url: \"sqlite:modelgate.db\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTablesLineUp has a name with wide characters in a column before others.
func TestTablesLineUp(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.customer(t, "bakery")
	head, row, _ := strings.Cut(b.command(t, exitOK, nil, "subaccount", "list"), "\n")
	// The two wide characters take two columns each.
	if at := strings.Index(head, "STATUS"); !strings.Contains(row, "active") || []rune(row)[at-2] != 'a' {
		t.Errorf("the status does not stand below its head:\n%s\n%s", head, row)
	}
}

func TestClientsByName(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	var shown, byID modelgate.Client
	b.command(t, exitOK, &shown, "client", "show", "acme")
	b.command(t, exitOK, &byID, "client", "show", string(b.client))
	if shown.ID != b.client || byID.Name != "acme" {
		t.Errorf("by name %+v, by id %+v", shown, byID)
	}
	b.command(t, exitOK, nil, "client", "set", "acme", "--max-keys", "7")
	b.command(t, exitOK, nil, "balance", "credit", "--client", "acme", "--usd", "1")
	b.command(t, exitOK, nil, "budget", "set", "--client", "acme", "--scope", "client", "--period", "day", "--usd", "5")
	if b.command(t, exitOK, &shown, "client", "show", "acme"); shown.MaxKeys != 7 {
		t.Errorf("after set: %+v", shown)
	}
	b.command(t, exitOK, nil, "client", "set", "acme", "--max-rules", "2000")
	if b.command(t, exitOK, &shown, "client", "show", "acme"); shown.MaxRules != 2000 || shown.MaxKeys != 7 {
		t.Errorf("after set: %+v", shown)
	}
	for _, n := range []string{"0", "-1", "100001"} {
		b.command(t, exitError, nil, "client", "set", "acme", "--max-rules", n)
	}
	var second modelgate.Client
	b.command(t, exitOK, &second, "client", "create", "--name", "acme")
	want := `modelgate: 2 organizations are called "acme"; use an id: `
	got := b.command(t, exitError, nil, "key", "list", "--client", "acme")
	if !strings.HasPrefix(got, want) || !strings.Contains(got, string(b.client)) || !strings.Contains(got, string(second.ID)) {
		t.Errorf("a name that two have: %s", got)
	}
	b.command(t, exitOK, nil, "client", "show", string(second.ID))
}

func TestSubAccountSet(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	account := b.customer(t, "bakery")
	for _, status := range []string{"suspended", "active"} {
		var changed modelgate.SubAccount
		b.command(t, exitOK, &changed, "subaccount", "set", string(account.ID), "--client", "acme", "--status", status)
		var listed []modelgate.SubAccount
		b.command(t, exitOK, &listed, "subaccount", "list")
		if string(changed.Status) != status || len(listed) != 1 || string(listed[0].Status) != status {
			t.Errorf("after --status %s: %+v, %+v", status, changed, listed)
		}
	}
	var records []auditRow
	b.command(t, exitOK, &records, "audit", "list", "--client", "acme", "--limit", "1")
	if len(records) != 1 || records[0].Action != "sub_account.update" || records[0].Actor.Operator != "subaccount set" {
		t.Errorf("the last record is %+v", records)
	}
}

func TestClientSuspendAndResume(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	if got := b.command(t, exitUsage, nil, "client", "suspend", "acme"); !strings.Contains(got, "add --yes") {
		t.Errorf("without a terminal and without --yes: %s", got)
	}
	for _, c := range []struct {
		args   []string
		want   modelgate.ClientStatus
		action string
	}{
		{[]string{"client", "suspend", "acme", "--yes"}, modelgate.ClientSuspended, "client.suspend"},
		{[]string{"client", "resume", "acme"}, modelgate.ClientActive, "client.resume"},
	} {
		var changed, shown modelgate.Client
		b.command(t, exitOK, &changed, c.args...)
		b.command(t, exitOK, &shown, "client", "show", "acme")
		if changed.Status != c.want || shown.Status != c.want {
			t.Errorf("%v: printed %q, stored %q", c.args, changed.Status, shown.Status)
		}
		var records []auditRow
		b.command(t, exitOK, &records, "audit", "list", "--client", "acme", "--limit", "1")
		if len(records) != 1 || records[0].Action != c.action {
			t.Errorf("the last record is %+v, want %s", records, c.action)
		}
	}
}
