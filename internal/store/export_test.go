package store

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/sqldb"
)

// biller is an organization that bills two sub-accounts, the first of which
// is mapped, at a time that the test sets.
type biller struct {
	*testing.T
	*DB
	client modelgate.ClientID
	sub    modelgate.SubAccountID
	other  modelgate.SubAccountID
	at     time.Time
	rows   int
}

func newBilling(t *testing.T, db *DB) *biller {
	t.Helper()
	b := &biller{T: t, DB: db, at: noon}
	db.now = func() time.Time { return b.at }
	b.client = createClient(t, db, 1)
	b.sub, b.other = createSubAccount(t, db, b.client, 2).ID, createSubAccount(t, db, b.client, 3).ID
	b.putKey(billing.On)
	b.mapTo("cus_1")
	return b
}

func (b *biller) putKey(to billing.Switch) {
	b.Helper()
	must(b, b.PutProcessorKey(b.Context(), b.client, billing.ProcessorKey{KeyID: "k", Value: []byte("sealed")}, to, audit("processor.config.put")))
}

func (b *biller) mapTo(customer string) {
	b.Helper()
	m := modelgate.Mapping{SubAccountID: b.sub, CustomerID: customer}
	must(b, b.PutMapping(b.Context(), b.client, m, audit("processor.mapping.put")))
}

func (b *biller) markup(pct string) {
	b.Helper()
	m, err := modelgate.ParseMarkup(pct)
	must(b, err)
	must(b, b.PatchSubAccount(b.Context(), b.client, b.sub, modelgate.SubAccountPatch{Markup: &m}, audit("sub_account.update")))
}

// book books calls of the mapped sub-account that cost so many nano-USD, one
// after the other, and returns the id of the last.
func (b *biller) book(costs ...modelgate.Nano) modelgate.UUID {
	b.Helper()
	var last modelgate.UUID
	for _, cost := range costs {
		b.rows++
		r := row(b.client, b.rows)
		r.SubAccountID, r.Cost = b.sub, cost
		book(b, b.DB, "instance", r)
		last = r.ID
	}
	return last
}

func (b *biller) list(status modelgate.ExportStatus) billing.EventList {
	b.Helper()
	l, err := b.ExportEvents(b.Context(), b.client, billing.EventPage{Status: status, Limit: 200})
	must(b, err)
	return l
}

// values are the events' amounts, the oldest first.
func (b *biller) values() (all []modelgate.Micro) {
	b.Helper()
	for _, e := range slices.Backward(b.list("").Events) {
		all = append(all, e.Value)
	}
	return all
}

// claim takes the one queue in which something is due.
func (b *biller) claim(holder string) billing.Queue {
	b.Helper()
	queues, err := b.ClaimQueues(b.Context(), holder, 10, time.Minute)
	must(b, err)
	if len(queues) != 1 {
		b.Fatalf("ClaimQueues(%s) = %v, want one queue", holder, queues)
	}
	return queues[0]
}

func (b *biller) begin(l billing.Queue, generation int64) ([]billing.Sending, int) {
	b.Helper()
	out, failed, err := b.BeginSending(b.Context(), l, generation, 100)
	must(b, err)
	return out, failed
}

func (b *biller) finish(l billing.Queue, s ...billing.Settled) {
	b.Helper()
	must(b, b.FinishSending(b.Context(), l, s, time.Time{}))
}

// reconciled finds no difference but that the test's rows have neither keys
// nor jobs.
func (b *biller) reconciled() {
	b.Helper()
	found, err := b.Reconcile(b.Context(), b.client)
	must(b, err)
	found = slices.DeleteFunc(found, func(d Difference) bool { return d.What == "unknown_key" || d.What == "job" })
	if len(found) > 0 {
		b.Errorf("Reconcile = %v", found)
	}
}

func eachBilling(t *testing.T, test func(b *biller)) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) { test(newBilling(t, db)) })
}

func TestEventsAreQueuedWithTheirRows(t *testing.T) {
	eachBilling(t, func(b *biller) {
		b.markup("50")
		b.book(2000, 0, 300, 400)
		if got := fmt.Sprint(b.values()); got != "[3 1]" { // 3000; 450 carried; 450+600
			b.Errorf("values %s, want [3 1]", got)
		}
		free := row(b.client, 90) // of the one that is not mapped
		free.SubAccountID = b.other
		provisional := row(b.client, 91)
		provisional.SubAccountID, provisional.ParseStatus = b.sub, modelgate.ParseProvisional
		book(b, b.DB, "instance", free, provisional, row(b.client, 92))
		if n := len(b.values()); n != 2 {
			b.Errorf("%d events, want 2", n)
		}
		e := b.list("").Events[1]
		if e.CustomerID != "cus_1" || e.SubAccountID != b.sub || e.Status != modelgate.ExportPending || e.Attempts != 0 ||
			!e.CreatedAt.Equal(uuid(1).Time()) || e.UsageID != modelgate.UsageID(id(1)) {
			b.Errorf("event %+v", e)
		}
		// The same batch once more books nothing.
		again := row(b.client, 1)
		again.SubAccountID, again.Cost = b.sub, 2000
		book(b, b.DB, "instance", again)
		if n := len(b.values()); n != 2 {
			b.Errorf("%d events after a repeated batch, want 2", n)
		}
		b.reconciled()
	})
}

func TestWhatIsQueuedStays(t *testing.T) {
	eachBilling(t, func(b *biller) {
		b.book(1000)
		b.markup("100")
		b.mapTo("cus_2")
		b.book(1000)
		suspended := modelgate.SubAccountSuspended
		must(b, b.PatchSubAccount(b.Context(), b.client, b.sub, modelgate.SubAccountPatch{Status: &suspended}, audit("x")))
		b.book(1000) // a call that was under way
		must(b, b.SwitchProcessor(b.Context(), b.client, billing.Off, audit("x")))
		b.book(1000)
		must(b, b.SwitchProcessor(b.Context(), b.client, billing.On, audit("x")))
		must(b, b.DeleteMapping(b.Context(), b.client, b.sub, audit("x")))
		b.book(1000)
		if got := fmt.Sprint(b.values()); got != "[1 2 2]" {
			b.Errorf("values %s, want [1 2 2]", got)
		}
		var customers []string
		for _, e := range slices.Backward(b.list("").Events) {
			customers = append(customers, e.CustomerID)
		}
		if got := fmt.Sprint(customers); got != "[cus_1 cus_2 cus_2]" {
			b.Errorf("customers %s", got)
		}
		queues, err := b.ClaimQueues(b.Context(), "a", 10, time.Minute)
		must(b, err)
		if len(queues) != 2 {
			b.Errorf("queues %v, want those of both customers", queues)
		}
		b.reconciled()
	})
}

func TestQueuesAreOnesAtATime(t *testing.T) {
	eachBilling(t, func(b *biller) {
		b.book(1000)
		l := b.claim("a")
		if more, err := b.ClaimQueues(b.Context(), "b", 10, time.Minute); err != nil || len(more) != 0 {
			b.Errorf("a claimed queue was claimed again: %v, %v", more, err)
		}
		sending, _ := b.begin(l, 1)
		if len(sending) != 1 || sending[0].Attempts != 1 || !sending[0].UnsureAt.IsZero() {
			b.Fatalf("sending %+v", sending)
		}
		b.book(1000) // while the first is under way
		b.finish(l, billing.Settled{Sending: sending[0], Status: modelgate.ExportSent, At: b.at})
		l = b.claim("b")
		second, _ := b.begin(l, 1)
		if len(second) != 1 || second[0].UsageID != modelgate.UsageID(id(2)) {
			b.Fatalf("sending %+v, want the second", second)
		}
		// The claim runs out, and another takes over; the first one's word
		// about what it sent still counts, but frees nothing.
		b.at = b.at.Add(2 * time.Minute)
		l2 := b.claim("c")
		b.finish(l, billing.Settled{Sending: second[0], Status: modelgate.ExportSent, At: b.at})
		if more, err := b.ClaimQueues(b.Context(), "d", 10, time.Minute); err != nil || len(more) != 0 {
			b.Errorf("the queue of another was freed: %v, %v", more, err)
		}
		if none, _ := b.begin(l, 1); none != nil {
			b.Errorf("a lost claim still sends %v", none)
		}
		if none, _ := b.begin(l2, 1); none != nil {
			b.Errorf("what is sent is sent again: %v", none)
		}
		must(b, b.FreeQueues(b.Context(), "c"))
		b.finish(b.claim("c"))
		if more, err := b.ClaimQueues(b.Context(), "d", 10, time.Minute); err != nil || len(more) != 0 {
			b.Errorf("nothing is due, and yet %v, %v", more, err)
		}
		if c := b.list("").Counts; c != (billing.EventCounts{Sent24h: 2}) {
			b.Errorf("counts %+v", c)
		}
		b.at = b.at.Add(25 * time.Hour)
		if c := b.list("").Counts; c != (billing.EventCounts{}) {
			b.Errorf("counts a day later %+v", c)
		}
		b.reconciled()
	})
}

// A sender that has lost its queue knows nothing of what the next one does:
// whatever it says, an event that may be counted says so.
func TestALostQueueHidesNothing(t *testing.T) {
	eachBilling(t, func(b *biller) {
		b.book(1000, 1000, 1000)
		lost := b.claim("a")
		tried, _ := b.begin(lost, 1)
		b.at = b.at.Add(2 * time.Minute)
		l := b.claim("b")
		if again, _ := b.begin(l, 1); len(tried) != 3 || len(again) != 3 { // b dies while it sends them
			b.Fatalf("a sends %v, b sends %v", tried, again)
		}
		b.finish(lost, billing.Settled{Sending: tried[0], Status: modelgate.ExportPending, At: b.at}, // put back untried
			billing.Settled{Sending: tried[1], Status: modelgate.ExportFailed, LastError: "refused"},
			billing.Settled{Sending: tried[2], Status: modelgate.ExportSent, At: b.at})
		b.at = b.at.Add(modelgate.ExportUnsure)
		if none, failed := b.begin(b.claim("c"), 1); none != nil || failed != 2 {
			b.Errorf("23 h later %v are sent, %d have failed; want none and 2", none, failed)
		}
		var got []string
		for _, e := range slices.Backward(b.list("").Events) {
			got = append(got, fmt.Sprint(e.Status, " ", e.LastError))
		}
		if want := []string{"failed " + billing.ReasonAmbiguous, "failed " + billing.ReasonAmbiguous, "sent "}; !slices.Equal(got, want) {
			b.Errorf("%q, want %q", got, want)
		}
		b.reconciled()
	})
}

// What may have been counted is sent again only while the processor remembers
// it, and with the same key.
func TestUnsureEvents(t *testing.T) {
	eachBilling(t, func(b *biller) {
		id := b.book(1000)
		try := func(generation int64) ([]billing.Sending, int) { return b.begin(b.claim("a"), generation) }
		first, _ := try(1) // the process dies here
		began := b.at
		b.at = b.at.Add(22 * time.Hour)
		again, failed := try(1)
		if len(again) != 1 || failed != 0 || !again[0].UnsureAt.Equal(began) || again[0].Attempts != 2 {
			b.Fatalf("22 h later: %+v, %d failed", again, failed)
		}
		// Refused for now, which says nothing about the try of before.
		l := billing.Queue{ClientID: b.client, CustomerID: "cus_1", Holder: "a", Until: sqldb.Stored(b.at.Add(time.Minute))}
		b.finish(l, billing.Settled{Sending: again[0], Status: modelgate.ExportPending, At: b.at.Add(time.Hour)})
		b.at = b.at.Add(time.Hour)
		if none, failed := try(1); none != nil || failed != 1 {
			b.Fatalf("23 h later: %+v, %d failed", none, failed)
		}
		check := func(want modelgate.ExportStatus, reason string) {
			b.Helper()
			if e := b.list("").Events[0]; e.Status != want || e.LastError != reason {
				b.Errorf("%s %q, want %s %q", e.Status, e.LastError, want, reason)
			}
		}
		check(modelgate.ExportFailed, billing.ReasonAmbiguous)
		must(b, b.RetryEvent(b.Context(), b.client, id, audit("x")))
		check(modelgate.ExportFailed, billing.ReasonAmbiguous)
		must(b, b.ResendEvent(b.Context(), id, true, audit("x")))
		check(modelgate.ExportPending, "")
		b.at = b.at.Add(2 * time.Minute) // past the claim of the last try
		forced, failed := try(1)
		if len(forced) != 1 || failed != 0 || !forced[0].UnsureAt.IsZero() || forced[0].Attempts != 1 {
			b.Fatalf("forced: %+v, %d failed", forced, failed)
		}
		b.at = b.at.Add(2 * time.Minute)
		if none, failed := try(2); none != nil || failed != 1 {
			b.Errorf("with another key: %+v, %d failed", none, failed)
		}
		check(modelgate.ExportFailed, billing.ReasonOtherKey)
		_ = first
		b.reconciled()
	})
}

// A clock that was ahead and is set right says nothing about how long ago a
// try was.
func TestUnsureByAnotherClock(t *testing.T) {
	eachBilling(t, func(b *biller) {
		event := b.book(1000)
		b.at = b.at.Add(48 * time.Hour)
		tried := b.at
		b.begin(b.claim("a"), 1) // the process dies here
		must(b, b.FreeQueues(b.Context(), "a"))
		for _, c := range []struct {
			at           time.Time
			sent, failed int
		}{{tried.Add(-time.Minute), 1, 0}, {tried.Add(-48 * time.Hour), 0, 1}} {
			b.at = c.at
			must(b, b.FreeQueues(b.Context(), "a"))
			if sending, failed := b.begin(b.claim("a"), 1); len(sending) != c.sent || failed != c.failed {
				b.Errorf("at %v: %v are sent, %d have failed", c.at, sending, failed)
			}
		}
		must(b, b.RetryEvent(b.Context(), b.client, event, audit("x")))
		if e := b.list("").Events[0]; e.Status != modelgate.ExportFailed || e.LastError != billing.ReasonAmbiguous {
			b.Errorf("after a retry: %+v", e)
		}
	})
}

// In a restored database nothing is known of what was sent after the backup:
// what waits there is sent while the processor remembers, and then no more.
func TestRestoredEventsAreDoubted(t *testing.T) {
	eachBilling(t, func(b *biller) {
		first := b.book(1000)
		l := b.claim("a")
		sending, _ := b.begin(l, 1)
		b.finish(l, billing.Settled{Sending: sending[0], Status: modelgate.ExportFailed, LastError: "no such customer"})
		b.book(1000)
		b.putKey(billing.On)            // generation 2
		b.at = b.at.Add(10 * time.Hour) // 22 hours after the calls
		b.book(1000)                    // once more, from a spool
		for _, want := range []int64{3, 0} {
			if n, err := b.DoubtEvents(b.Context(), audit("processor.event.doubt")); n != want || err != nil {
				b.Errorf("DoubtEvents = %d, %v, want %d", n, err, want)
			}
		}
		if sending, failed := b.begin(b.claim("a"), 2); len(sending) != 2 || failed != 0 {
			b.Errorf("%v are sent, %d have failed; want the second and the third", sending, failed)
		}
		b.at = b.at.Add(2 * time.Hour)
		if sending, failed := b.begin(b.claim("a"), 2); sending != nil || failed != 2 {
			b.Errorf("2 h later %v are sent, %d have failed; want none and 2", sending, failed)
		}
		must(b, b.RetryEvent(b.Context(), b.client, first, audit("x")))
		for _, e := range b.list(modelgate.ExportFailed).Events {
			if e.LastError != billing.ReasonAmbiguous {
				b.Errorf("%+v", e)
			}
		}
		if c := b.list("").Counts; c != (billing.EventCounts{Failed: 3}) {
			b.Errorf("counts %+v", c)
		}
		b.reconciled()
	})
}

func TestOldEventsFail(t *testing.T) {
	eachBilling(t, func(b *biller) {
		id := b.book(1000)
		b.at = b.at.Add(modelgate.ExportLife)
		l := b.claim("a")
		if sending, failed := b.begin(l, 1); sending != nil || failed != 1 {
			b.Errorf("sending %v, %d failed", sending, failed)
		}
		b.finish(l)
		if e := b.list(modelgate.ExportFailed).Events; len(e) != 1 || e[0].LastError != billing.ReasonExpired {
			b.Errorf("failed %+v", e)
		}
		must(b, b.RetryEvent(b.Context(), b.client, id, audit("x")))
		if c := b.list("").Counts; c.Pending != 1 {
			b.Errorf("counts %+v", c)
		}
	})
}

func TestRetryEvent(t *testing.T) {
	eachBilling(t, func(b *biller) {
		event := b.book(1000)
		other := createClient(b, b.DB, 9)
		wantKind(b, "retry of a pending one", b.RetryEvent(b.Context(), b.client, event, audit("x")), modelgate.NotFound)
		wantKind(b, "resend of a pending one", b.ResendEvent(b.Context(), event, true, audit("x")), modelgate.NotFound)
		l := b.claim("a")
		sending, _ := b.begin(l, 1)
		b.finish(l, billing.Settled{Sending: sending[0], Status: modelgate.ExportFailed, LastError: "no such customer"})
		wantKind(b, "retry by another", b.RetryEvent(b.Context(), other, event, audit("x")), modelgate.NotFound)
		wantKind(b, "retry of none", b.RetryEvent(b.Context(), b.client, uuid(77), audit("x")), modelgate.NotFound)
		wantKind(b, "resend of none", b.ResendEvent(b.Context(), uuid(77), true, audit("x")), modelgate.NotFound)
		b.at = b.at.Add(time.Hour)
		must(b, b.RetryEvent(b.Context(), b.client, event, audit("processor.event.retry")))
		e := b.list("").Events[0]
		if e.Status != modelgate.ExportPending || e.Attempts != 0 || e.LastError != "" {
			b.Errorf("event %+v", e)
		}
		b.at = b.at.Add(90 * time.Second)
		if got := b.list("").OldestPending; got != 90*time.Second {
			b.Errorf("oldest pending %v", got)
		}
		if pending, oldest, err := b.ExportBacklog(b.Context()); pending != 1 || oldest != 90*time.Second || err != nil {
			b.Errorf("backlog %d, %v, %v", pending, oldest, err)
		}
		if n := number(b, b.DB, "SELECT COUNT(*) FROM audit WHERE action = 'processor.event.retry'"); n != 1 {
			b.Errorf("%d audit records", n)
		}
		b.claim("a")
		b.reconciled()
	})
}

// The queue rests where the processor is away, however much is due in it.
func TestQueueRests(t *testing.T) {
	eachBilling(t, func(b *biller) {
		b.book(1000, 1000)
		l := b.claim("a")
		sending, _ := b.begin(l, 1)
		later := b.at.Add(time.Minute)
		var settled []billing.Settled
		for _, s := range sending {
			s.Attempts-- // not tried after all
			settled = append(settled, billing.Settled{Sending: s, Status: modelgate.ExportPending, At: b.at})
		}
		must(b, b.FinishSending(b.Context(), l, settled, later))
		if none, err := b.ClaimQueues(b.Context(), "a", 1, time.Minute); err != nil || none != nil {
			b.Errorf("a resting queue was claimed: %v, %v", none, err)
		}
		b.at = later
		if again, _ := b.begin(b.claim("a"), 2); len(again) != 2 || again[0].Attempts != 1 {
			b.Errorf("after the rest: %+v", again)
		}
	})
}

func TestProcessorConfig(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 2).ID
		stranger := createClient(t, db, 3)
		if c, err := db.ProcessorConfig(t.Context(), client); err != nil || c.Enabled || c.Configured() || len(c.Mappings) > 0 {
			t.Errorf("unset: %+v, %v", c, err)
		}
		must(t, db.SwitchProcessor(t.Context(), client, billing.Off, audit("x")))
		wantKind(t, "enabling without a key", db.SwitchProcessor(t.Context(), client, billing.On, audit("x")), modelgate.BadRequest)
		_, err := db.ProcessorKey(t.Context(), client)
		wantKind(t, "no key", err, modelgate.BadRequest)
		// The second is another key, the third the second's sealed anew, and the
		// last one's own is no longer there.
		for i, same := range []int64{0, 0, 2, 1} {
			key := billing.ProcessorKey{KeyID: fmt.Sprint("k", i), Value: []byte{1, 0, byte(i)}, Generation: same}
			must(t, db.PutProcessorKey(t.Context(), client, key, i > 0, audit("x")))
			want := []int64{1, 2, 2, 3}[i]
			if k, err := db.ProcessorKey(t.Context(), client); err != nil || k.Generation != want || k.KeyID != key.KeyID {
				t.Errorf("key %d: %+v, %v, want generation %d", i, k, err, want)
			}
		}
		k, err := db.ProcessorKey(t.Context(), client)
		if err != nil || k.KeyID != "k3" || len(k.Value) != 3 {
			t.Errorf("key %+v, %v", k, err)
		}
		if kept, err := db.Secret(t.Context(), billing.ProcessorSecret(client)); err != nil || kept.KeyID != "k3" {
			t.Errorf("the secret of the key %+v, %v", kept, err)
		}
		wantKind(t, "foreign sub-account", db.PutMapping(t.Context(), stranger, modelgate.Mapping{SubAccountID: sub, CustomerID: "c"}, audit("x")), modelgate.NotFound)
		wantKind(t, "nothing to unmap", db.DeleteMapping(t.Context(), client, sub, audit("x")), modelgate.NotFound)
		must(t, db.PutMapping(t.Context(), client, modelgate.Mapping{SubAccountID: sub, CustomerID: "c1"}, audit("x")))
		must(t, db.PutMapping(t.Context(), client, modelgate.Mapping{SubAccountID: sub, CustomerID: "c2"}, audit("x")))
		wantKind(t, "unmapping by another", db.DeleteMapping(t.Context(), stranger, sub, audit("x")), modelgate.NotFound)
		c, err := db.ProcessorConfig(t.Context(), client)
		if err != nil || !c.Enabled || !c.Configured() || len(c.Mappings) != 1 || c.Mappings[0].CustomerID != "c2" {
			t.Errorf("set: %+v, %v", c, err)
		}
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		_, err := db.Secret(t.Context(), "a")
		wantKind(t, "no secret", err, modelgate.NotFound)
		for i, name := range []string{"a", "b", "c"} {
			kept, err := db.AddSecret(t.Context(), Secret{name, "old", []byte{byte(i)}})
			if err != nil || kept.KeyID != "old" {
				t.Fatalf("AddSecret = %+v, %v", kept, err)
			}
		}
		if kept, err := db.AddSecret(t.Context(), Secret{"a", "new", []byte("x")}); err != nil || kept.KeyID != "old" {
			t.Errorf("a second AddSecret = %+v, %v, want the first", kept, err)
		}
		old, err := db.SecretsNotUnder(t.Context(), "new", "a", 1)
		if err != nil || len(old) != 1 || old[0].Name != "b" {
			t.Fatalf("SecretsNotUnder = %v, %v", old, err)
		}
		n, err := db.ReplaceSecrets(t.Context(), old, []Secret{{"b", "new", []byte("y")}}, audit("secret.rotate"))
		if err != nil || n != 1 {
			t.Errorf("ReplaceSecrets = %d, %v", n, err)
		}
		n, err = db.ReplaceSecrets(t.Context(), old, []Secret{{"b", "new", []byte("z")}}, audit("secret.rotate"))
		if err != nil || n != 0 {
			t.Errorf("ReplaceSecrets of what has changed = %d, %v", n, err)
		}
		counts, err := db.CountSecrets(t.Context())
		if err != nil || fmt.Sprint(counts) != "[{new 1} {old 2}]" {
			t.Errorf("CountSecrets = %v, %v", counts, err)
		}
	})
}

func TestOrders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		o := spend.Order{ID: id(50), ClientID: client, Amount: 25 * 1e9, CreatedAt: noon}
		wantKind(t, "order of an invoiced client", db.CreateOrder(t.Context(), o, audit("x")), modelgate.BadRequest)
		must(t, db.UpdateClient(t.Context(), client, func(c *modelgate.Client) error { c.Billing = modelgate.Manual; return nil }, audit("x")))
		must(t, db.CreateOrder(t.Context(), o, audit("checkout.create")))
		must(t, db.SetOrderSession(t.Context(), o.ID, "cs_1"))
		must(t, db.SetOrderSession(t.Context(), o.ID, "cs_2"))
		if got, err := db.Order(t.Context(), o.ID); err != nil || got.SessionID != "cs_1" || got.Status != spend.OrderOpen || got.Amount != o.Amount {
			t.Errorf("order %+v, %v", got, err)
		}
		_, err := db.Order(t.Context(), id(51))
		wantKind(t, "no order", err, modelgate.NotFound)
		pay := func(p spend.Payment) bool {
			t.Helper()
			paid, err := db.PayOrder(t.Context(), p, audit("balance.topup"))
			must(t, err)
			return paid
		}
		if pay(spend.Payment{OrderID: o.ID, SessionID: "cs_2", PaymentID: "pi_1"}) || pay(spend.Payment{OrderID: id(51), SessionID: "cs_1", PaymentID: "pi_1"}) {
			t.Error("another session or order was paid")
		}
		if !pay(spend.Payment{OrderID: o.ID, SessionID: "cs_1", PaymentID: "pi_1"}) || pay(spend.Payment{OrderID: o.ID, SessionID: "cs_1", PaymentID: "pi_1"}) {
			t.Error("an order is paid once")
		}
		second := spend.Order{ID: id(52), ClientID: client, Amount: 5 * 1e9, CreatedAt: noon}
		must(t, db.CreateOrder(t.Context(), second, audit("x")))
		_, err = db.PayOrder(t.Context(), spend.Payment{OrderID: second.ID, SessionID: "cs_3", PaymentID: "pi_1"}, audit("x"))
		wantKind(t, "a payment for two orders", err, modelgate.Conflict)
		b, entries, err := db.Balance(t.Context(), client, 0)
		if err != nil || b.Credited != o.Amount || len(entries) != 1 || entries[0].ID != o.ID {
			t.Errorf("balance %+v, %v, %v", b, entries, err)
		}
		if found, err := db.Reconcile(t.Context(), ""); err != nil || len(found) > 0 {
			t.Errorf("Reconcile = %v, %v", found, err)
		}
	})
}

// Reconcile finds what is not as it should be.
func TestReconcileExports(t *testing.T) {
	eachBilling(t, func(b *biller) {
		b.at = noon.Add(-24 * time.Hour) // so that mapping and export are older than the calls
		must(b, b.DeleteMapping(b.Context(), b.client, b.sub, audit("x")))
		must(b, b.SwitchProcessor(b.Context(), b.client, billing.Off, audit("x")))
		must(b, b.SwitchProcessor(b.Context(), b.client, billing.On, audit("x")))
		b.mapTo("cus_1")
		b.at = noon
		b.book(1500, 1500, 700)
		b.reconciled()
		for _, c := range []struct{ harm, want, undo string }{
			{"UPDATE processor_event SET value = 7 WHERE value = 1", "export 3 9", "UPDATE processor_event SET value = 1 WHERE value = 7"},
			{"UPDATE processor_carry SET rest = rest + 1", "export 3 3", "UPDATE processor_carry SET rest = rest - 1"},
			{"UPDATE processor_queue SET next_at = 9223372036854775807", "export_forgotten 0 2", "UPDATE processor_queue SET next_at = 0"},
			{"UPDATE processor_event SET usage_id = usage_id || 'x' WHERE value = 1", "export_unknown_row 0 1", ""},
			{"DELETE FROM processor_event WHERE value = 1", "export_missing 0 1", ""},
		} {
			_, err := b.write.Exec(c.harm)
			must(b, err)
			found, err := b.Reconcile(b.Context(), b.client)
			must(b, err)
			var names []string
			for _, d := range found {
				names = append(names, fmt.Sprint(d.What, " ", d.Want, " ", d.Have))
			}
			if !slices.Contains(names, c.want) {
				b.Errorf("%s: %q, want %q among them", c.harm, names, c.want)
			}
			_, err = b.write.Exec(c.undo)
			must(b, err)
		}
	})
}

// All failed events are queued again, but for those that RetryEvent would
// leave; those of others and in other states stay.
func TestRetryEvents(t *testing.T) {
	eachBilling(t, func(b *biller) {
		other := createClient(b, b.DB, 9)
		ids := []modelgate.UUID{b.book(1000), b.book(1000)}
		b.mapTo("cus_2")
		ids = append(ids, b.book(1000), b.book(1000), b.book(1000), b.book(1000))
		set := func(i int, status modelgate.ExportStatus, unsure time.Time) {
			must(b, b.update(b.Context(), "test", func(tx *sql.Tx) error {
				_, err := tx.ExecContext(b.Context(), "UPDATE processor_event SET status = $1, unsure_at = $2, attempts = 3, last_error = 'x' WHERE usage_id = $3",
					string(status), sqldb.Micros(unsure), ids[i].String())
				return err
			}))
		}
		set(0, modelgate.ExportFailed, time.Time{})
		set(1, modelgate.ExportFailed, b.at.Add(-modelgate.ExportUnsure)) // forgotten
		set(2, modelgate.ExportFailed, b.at.Add(time.Second-modelgate.ExportUnsure))
		set(3, modelgate.ExportFailed, b.at.Add(2*billing.ClockSlack)) // by a clock that was ahead
		set(4, modelgate.ExportSent, time.Time{})
		must(b, b.update(b.Context(), "test", func(tx *sql.Tx) error {
			_, err := tx.ExecContext(b.Context(), "UPDATE processor_queue SET next_at = $1", int64(math.MaxInt64))
			return err
		}))
		if done, err := b.RetryEvents(b.Context(), other, audit("x")); done != (billing.RetriedEvents{}) || err != nil {
			b.Errorf("another's RetryEvents = %+v, %v", done, err)
		}
		done, err := b.RetryEvents(b.Context(), b.client, audit("processor.events.retry"))
		if done != (billing.RetriedEvents{Retried: 2, Ambiguous: 2}) || err != nil {
			b.Errorf("RetryEvents = %+v, %v, want 2 and 2", done, err)
		}
		var got []string
		for _, e := range slices.Backward(b.list("").Events) {
			got = append(got, fmt.Sprint(e.Status, " ", e.Attempts, " ", e.LastError))
		}
		want := []string{"pending 0 ", "failed 3 " + billing.ReasonAmbiguous, "pending 0 ", "failed 3 " + billing.ReasonAmbiguous, "sent 3 x", "pending 0 "}
		if !slices.Equal(got, want) {
			b.Errorf("events %q, want %q", got, want)
		}
		if n := number(b, b.DB, "SELECT COUNT(*) FROM processor_queue WHERE next_at <= "+fmt.Sprint(sqldb.Micros(b.at))); n != 2 {
			b.Errorf("%d queues are awake, want both", n)
		}
		if done, err = b.RetryEvents(b.Context(), b.client, audit("x")); done.Retried != 0 || err != nil {
			b.Errorf("again RetryEvents = %+v, %v", done, err)
		}
	})
}

// Pages of events follow one another without a gap, also where events have
// one instant.
func TestExportPages(t *testing.T) {
	eachBilling(t, func(b *biller) {
		for range 7 {
			b.book(1000)
		}
		all := b.list("").Events
		for _, status := range []modelgate.ExportStatus{"", modelgate.ExportPending} {
			var got []modelgate.UsageID
			p := billing.EventPage{Status: status, Limit: 3}
			for more := true; more; {
				l, err := b.ExportEvents(b.Context(), b.client, p)
				must(b, err)
				for _, e := range l.Events {
					got = append(got, e.UsageID)
				}
				last := l.Events[len(l.Events)-1]
				p.After, more = &sqldb.Cursor{At: last.CreatedAt, ID: string(last.UsageID)}, l.More
			}
			if !slices.EqualFunc(got, all, func(id modelgate.UsageID, e modelgate.ExportEvent) bool { return id == e.UsageID }) || len(all) != 7 {
				b.Errorf("pages of %q: %v", status, got)
			}
		}
	})
}
