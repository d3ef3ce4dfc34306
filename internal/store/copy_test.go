package store

import (
	"slices"
	"strings"
	"testing"

	"modelgate"
)

// fillAll puts something into the tables by the ways that are used.
func fillAll(t *testing.T, db *DB) modelgate.ClientID {
	t.Helper()
	client := createClient(t, db, 1)
	sub := createSubAccount(t, db, client, 2)
	key := issue(t, db, client, sub.ID, 3)
	must(t, db.PutBudget(t.Context(), client, KeyScope{}, modelgate.Budget{Level: modelgate.LevelKey, ID: string(key.ID), Period: modelgate.Month, Limit: modelgate.USD}, audit("budget.put")))
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

// TestCopy copies from each engine to each.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, from := range engines {
		for _, to := range engines {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				source, target := open(t, options(t, from)), open(t, options(t, to))
				client := fillAll(t, source)
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
				// What goes on after the copy is no different from before.
				book(t, target, "one", row(client, 5000))
				issue(t, target, client, "", 6000)
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
