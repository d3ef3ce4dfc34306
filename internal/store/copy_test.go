package store

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/access"
	"modelgate/internal/store/evidence"
	"modelgate/test/testkit"
)

// fillAll puts something into the tables by the ways that are used.
func fillAll(t *testing.T, db *DB) modelgate.ClientID {
	t.Helper()
	client := createClient(t, db, 1)
	sub := createSubAccount(t, db, client, 2)
	key := issue(t, db, client, sub.ID, 3)
	must(t, db.PutBudget(t.Context(), client, "", modelgate.Budget{Level: modelgate.LevelKey, ID: string(key.ID), Period: modelgate.Month, Limit: modelgate.USD}, audit("budget.put")))
	must(t, db.StartSession(t.Context(), session(key, 4), digest(4)))
	in, err := db.SignIn(t.Context(), anna(5), []access.Membership{membership(client, modelgate.RoleOwner, 6)}, func() modelgate.Audit { return audit("") })
	must(t, err)
	must(t, db.StartSession(t.Context(), personSession(in.Members[0], 8), digest(8)))
	must(t, db.EndSessionsOfProvider(t.Context(), access.Logout{Issuer: "i", TokenID: "t", Session: "s", Expires: noon.Add(time.Hour)}))
	rows := make([]modelgate.UsageRow, 300) // more than one statement
	for i := range rows {
		rows[i] = row(client, 1000+i)
		rows[i].KeyID, rows[i].SubAccountID = key.ID, sub.ID
		rows[i].Attribution = map[string]string{"z": "last", "a": "ä\u2028\"", "key_id": string(key.ID)}
		rows[i].ViaSDK = i%2 == 0
	}
	book(t, db, "one", rows...)
	return client
}

// rowsIn is how many rows a table has.
func rowsIn(t *testing.T, db *DB, table string) int64 {
	t.Helper()
	return number(t, db, "SELECT COUNT(*) FROM "+table)
}

// signedExport is a client's whole chain as GET /gw/evidence answers it, at
// noon.
func signedExport(t *testing.T, db *DB, client modelgate.ClientID) []byte {
	t.Helper()
	stored, err := db.Evidence(t.Context(), client, evidence.Range{})
	must(t, err)
	part := records.Part{Org: client, From: stored.From, To: stored.To, Latest: stored.Head.Seq, Prev: stored.Prev, Last: stored.Last, At: noon}
	signer := records.Signer{Key: testkit.EvidenceKey(t, 1)}
	header, err := signer.Header(part)
	must(t, err)
	file := slices.Clone(header)
	must(t, db.EvidenceLines(t.Context(), stored, func(l evidence.Line) error {
		file = records.AppendRecord(file, l.Seq, l.Prev, l.Hash, l.Record)
		return nil
	}))
	head, err := signer.Head(part, header)
	must(t, err)
	return append(file, head...)
}

// TestCopy copies from each engine to each.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, from := range engines {
		for _, to := range engines {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				source, target := open(t, options(t, from)), open(t, options(t, to))
				client := fillAll(t, source)
				chainAll(t, source)
				key, before := testkit.EvidenceKey(t, 1), signedExport(t, source, client)
				createSubAccount(t, source, client, 7) // its record is in no chain when it is copied
				copied, err := source.Copy(t.Context(), target)
				must(t, err)
				names := make([]string, 0, len(copied))
				for _, c := range copied {
					names = append(names, c.Table)
					if have, want := rowsIn(t, target, c.Table), rowsIn(t, source, c.Table); have != want || c.Rows != want {
						t.Errorf("%s: %d rows, %d reported, want %d", c.Table, have, c.Rows, want)
					}
				}
				known := tables()
				slices.Sort(names)
				slices.Sort(known)
				if !slices.Equal(names, known) {
					t.Errorf("copied %v, want %v", names, known)
				}
				found, err := target.Reconcile(t.Context(), "")
				must(t, err)
				if len(found) > 0 {
					t.Errorf("the copy does not add up: %+v", found)
				}
				got, _, err := target.Usage(t.Context(), client, UsageList{Limit: 1000})
				must(t, err)
				want, _, err := source.Usage(t.Context(), client, UsageList{Limit: 1000})
				must(t, err)
				if len(got) != 300 || got[7].Attribution["a"] != want[7].Attribution["a"] || got[7].ViaSDK != want[7].ViaSDK || got[7].ID != want[7].ID {
					t.Errorf("%d rows, one is %+v, want %+v", len(got), got[7], want[7])
				}
				if after := signedExport(t, target, client); !bytes.Equal(before, after) {
					t.Errorf("the export of the copy is another:\n%.2000s\nwant\n%.2000s", after, before)
				}
				// What goes on after the copy is no different from before.
				book(t, target, "one", row(client, 5000))
				issue(t, target, client, "", 6000)
				first, err := records.Verify(bytes.NewReader(before), records.Options{VKeys: []string{key.VKey()}})
				must(t, err)
				if n := chainAll(t, target); first.Class != records.OK || n != 3 {
					t.Errorf("%d records were chained after the copy, want 3; before: %+v", n, first)
				}
				next, err := records.Verify(bytes.NewReader(signedExport(t, target, client)),
					records.Options{VKeys: []string{key.VKey()}, State: records.NewState(&first)})
				must(t, err)
				if next.Class != records.OK || next.To != first.To+3 {
					t.Errorf("the chain does not go on in the copy: %+v after %+v", next, first)
				}
			})
		}
	}
}

func TestCopyIntoUse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, target *DB) {
		source := open(t, options(t, "sqlite"))
		fillAll(t, source)
		createClient(t, target, 9)
		if _, err := source.Copy(t.Context(), target); err == nil || !strings.Contains(err.Error(), "the target is in use") {
			t.Errorf("Copy = %v, want a refusal", err)
		}
		if n := rowsIn(t, target, "usage_row"); n != 0 {
			t.Errorf("%d rows were copied all the same", n)
		}
	})
}
