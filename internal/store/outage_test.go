package store

import (
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// TestOutage stops the server under an open pool. Everything fails as
// unreachable, and once the server is back the same batch is booked.
func TestOutage(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgresCluster(t)
	db := open(t, Options{URL: cluster.Database(t), Now: func() time.Time { return noon }})
	client := createClient(t, db, 1)
	issue(t, db, client, "", 21)
	batch := Batch{Instance: "i", Rows: []modelgate.UsageRow{row(client, 1)}, Progress: Position{1, 1}}

	cluster.Stop(t)
	for range 3 { // the first may meet a connection that broke, later ones find none
		if _, err := db.Caller(t.Context(), digest(21), nil); !Unreachable(err) {
			t.Errorf("Caller = %v, want it unreachable", err)
		}
		if _, err := db.Record(t.Context(), batch); !Unreachable(err) || Poisoned(err) {
			t.Errorf("Record = %v, want it unreachable", err)
		}
		if _, err := db.ControlVersion(t.Context()); !Unreachable(err) {
			t.Errorf("ControlVersion = %v, want it unreachable", err)
		}
	}
	cluster.Start(t)
	if n, err := db.Record(t.Context(), batch); n != 1 || err != nil {
		t.Errorf("Record after the outage = %d, %v, want 1", n, err)
	}
	if _, err := db.Caller(t.Context(), digest(21), nil); err != nil {
		t.Errorf("Caller after the outage = %v", err)
	}
}
