package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/wallet"
)

// purse is a wallet with a clock.
type purse struct {
	*testing.T
	*DB
	id  wallet.ID
	now *atomic.Int64
	n   int // rows booked
}

// eachPurse runs a test with a wallet that is enabled, on each engine.
func eachPurse(t *testing.T, test func(p *purse)) {
	t.Parallel()
	for _, engine := range engines {
		if testing.Short() && engine != "sqlite" {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			now := new(atomic.Int64)
			now.Store(noon.UnixMicro())
			o := options(t, engine)
			o.Now = func() time.Time { return time.UnixMicro(now.Load()).UTC() }
			db := open(t, o)
			client := createClient(t, db, 1)
			sub := createSubAccount(t, db, client, 2)
			issue(t, db, client, sub.ID, 3)
			p := &purse{T: t, DB: db, id: wallet.ID{ClientID: client, SubAccountID: sub.ID}, now: now}
			p.put(nil)
			test(p)
			p.whole()
		})
	}
}

func (p *purse) put(change func(*wallet.Settings)) {
	p.Helper()
	s := wallet.Settings{Enabled: true, OnChargeback: wallet.Block, Checkout: wallet.UsualCheckout()}
	if change != nil {
		change(&s)
	}
	must(p, s.Validate())
	must(p, p.PutWallet(p.Context(), p.id, s, &s.Blocked, audit("wallet.configure")))
}

func (p *purse) wait(d time.Duration) { p.now.Add(d.Microseconds()) }

func (p *purse) add(kind wallet.Kind, usd modelgate.Nano, name string, expires time.Duration) wallet.Entry {
	p.Helper()
	e := wallet.Entry{Kind: kind, Amount: usd, Note: new(string), ExternalID: name}
	if expires != 0 {
		at := p.DB.now().Add(expires)
		e.ExpiresAt = &at
	}
	e, err := p.AddEntry(p.Context(), p.id, e, audit("wallet.credit"))
	must(p, err)
	return e
}

// call books a call that the wallet pays.
func (p *purse) call(cost modelgate.Nano, markup modelgate.Markup, change func(*modelgate.UsageRow)) {
	p.Helper()
	p.n++
	r := row(p.id.ClientID, p.n)
	r.KeyID, r.SubAccountID, r.Cost, r.WalletMarkup = modelgate.KeyID(id(3)), p.id.SubAccountID, cost, &markup
	r.Attribution = nil
	if change != nil {
		change(&r)
	}
	book(p, p.DB, "i", modelgate.Row(r.CallBegin, r.CallEnd))
}

// stands compares balance and what is available with what is wanted.
func (p *purse) stands(balance, available modelgate.Nano) wallet.Wallet {
	p.Helper()
	w, err := p.Wallet(p.Context(), p.id)
	must(p, err)
	if w.Balance != balance || w.Available != available {
		p.Errorf("balance %s, available %s, want %s, %s", w.Balance, w.Available, balance, available)
	}
	return w
}

// whole holds the sum of the listed entries against the balance, and reconciles.
func (p *purse) whole() {
	p.Helper()
	found, err := p.Reconcile(p.Context(), "")
	must(p, err)
	if len(found) > 0 {
		p.Errorf("reconcile finds %v", found)
	}
	w, err := p.Wallet(p.Context(), p.id)
	must(p, err)
	var sum modelgate.Nano
	var after *Cursor
	seen := 0
	for more := true; more; {
		var list []wallet.Entry
		list, more, err = p.Entries(p.Context(), p.id, 2, after)
		must(p, err)
		for _, e := range list {
			sum += e.Amount
			seen++
			at, last := e.Position()
			after = &Cursor{At: at, ID: last}
		}
	}
	if all, _, err := p.Entries(p.Context(), p.id, 0, nil); err != nil || sum != w.Balance || len(all) != seen {
		p.Errorf("%d entries of %d in pages come to %s, %v; the balance is %s", seen, len(all), sum, err, w.Balance)
	}
}

const usd = modelgate.USD

func TestWallet(t *testing.T) {
	eachPurse(t, func(p *purse) {
		p.stands(0, 0)
		p.put(func(s *wallet.Settings) { s.CreditLine = 5 * usd })
		p.stands(0, 5*usd)
		bought := p.add(wallet.Purchase, 10*usd, "order-1", 0)
		if again := p.add(wallet.Purchase, 10*usd, "order-1", 0); again.ID != bought.ID || !again.At.Equal(bought.At) {
			t.Errorf("the same entry again is %v, want %v", again, bought)
		}
		_, err := p.AddEntry(p.Context(), p.id, wallet.Entry{Kind: wallet.Purchase, Amount: 11 * usd, Note: new(string), ExternalID: "order-1"}, audit("wallet.credit"))
		wantKind(p, "other content", err, modelgate.Conflict)
		p.add(wallet.GrantKind, 2*usd, "welcome", time.Hour)
		p.call(1*usd, 50_000_000, nil) // 50 %
		w := p.stands(21*usd/2, 31*usd/2)
		if len(w.Grants) != 2 || w.Grants[0].Remaining != usd/2 || w.Grants[1].Remaining != 10*usd {
			t.Errorf("grants %+v, want 0.5 of the one that expires and all of the other", w.Grants)
		}
		p.wait(24 * time.Hour) // to another day of booking
		p.add(wallet.Adjustment, -1*usd, "fee", 0)
		p.call(10*usd, 0, nil)
		p.stands(-usd/2, 9*usd/2)
		if n, err := p.ExpireCredits(p.Context(), func(wallet.ID) modelgate.Audit { return audit("wallet.expire") }); n != 0 || err != nil {
			t.Errorf("%d entries expired, %v, want none: all was used", n, err)
		}
		p.add(wallet.GrantKind, 3*usd, "late", 0)
		if w := p.stands(5*usd/2, 15*usd/2); len(w.Grants) != 1 || w.Grants[0].Remaining != 5*usd/2 {
			t.Errorf("grants %+v, want the debt taken off the new one", w.Grants)
		}
		_, err = p.Wallet(p.Context(), wallet.ID{ClientID: p.id.ClientID, SubAccountID: modelgate.SubAccountID(id(9))})
		wantKind(p, "a wallet that is not there", err, modelgate.NotFound)
		err = p.PutWallet(p.Context(), wallet.ID{ClientID: createClient(t, p.DB, 7), SubAccountID: p.id.SubAccountID}, wallet.Settings{}, nil, audit("wallet.configure"))
		wantKind(p, "a neighbour's sub-account", err, modelgate.NotFound)
		p.put(func(s *wallet.Settings) { s.Enabled = false })
		p.stands(5*usd/2, 5*usd/2)
		p.put(func(s *wallet.Settings) { s.Blocked = true })
	})
}

// What a call or a job has reserved does not expire under it.
func TestExpiryLeavesWhatIsReserved(t *testing.T) {
	eachPurse(t, func(p *purse) {
		p.add(wallet.GrantKind, 10*usd, "trial", time.Hour)
		k := modelgate.Counter{ClientID: p.id.ClientID, Level: modelgate.LevelSubAccount, ID: string(p.id.SubAccountID), Period: modelgate.Total}
		ask := modelgate.Ask{Counter: k, Least: 6 * usd, Most: 6 * usd, Room: 6 * usd, Seq: 1}
		if got, err := p.Lease(p.Context(), "i", []modelgate.Ask{ask}); err != nil || got[0].Granted != 6*usd {
			t.Fatalf("Lease = %v, %v", got, err)
		}
		p.wait(2 * time.Hour)
		expire := func(want int) {
			t.Helper()
			if n, err := p.ExpireCredits(p.Context(), func(wallet.ID) modelgate.Audit { return audit("wallet.expire") }); n != want || err != nil {
				t.Errorf("%d entries expired, %v, want %d", n, err, want)
			}
		}
		expire(1)
		p.stands(6*usd, 0)
		expire(0)
		// A job: 2 of cost, 1 more stays reserved, until it costs nothing in the end.
		p.call(1*usd, 100_000_000, func(r *modelgate.UsageRow) {
			r.Holds = r.Holds.Add(&modelgate.Budget{Level: modelgate.LevelSubAccount, Period: modelgate.Total})
			r.ParseStatus = modelgate.ParseProvisional
			r.Job = &modelgate.NewJob{TaskID: "t", Kind: modelgate.Video, Protocol: "openai", Reserve: usd / 2, Deadline: p.DB.now().Add(time.Hour)}
		})
		p.stands(4*usd, 0)
		p.whole()
		must(p, p.GiveBack(p.Context(), "i", []modelgate.Return{{Counter: k, Close: true}}))
		w := p.stands(4*usd, 3*usd)
		if w.Held != 1*usd {
			t.Errorf("held %s, want the job's 1", w.Held)
		}
		expire(1)
		p.stands(1*usd, 0)
		j, err := p.Job(p.Context(), p.id.ClientID, "", "t")
		must(p, err)
		_, err = p.FinishJobs(p.Context(), []modelgate.JobFinal{{Job: j, Status: modelgate.JobFailed, ParseStatus: modelgate.ParseFailed}})
		must(p, err)
		p.stands(3*usd, 3*usd)
		expire(1)
		p.stands(2*usd, 2*usd) // what the job gave back is of no credit, and stays
	})
}

// The markup of a call's admission decides, whatever it is when the call is booked.
func TestMarkupIsFrozenAtAdmission(t *testing.T) {
	eachPurse(t, func(p *purse) {
		calls := 500
		if *full {
			calls = 50_000
		}
		p.add(wallet.Purchase, 1000*usd, "p", 0)
		var want modelgate.Nano
		for i := range calls / 10 {
			var rows []modelgate.UsageRow
			for j := range 10 {
				p.n++
				markup := modelgate.Markup(i*7_654_321 + j)
				r := row(p.id.ClientID, p.n)
				r.KeyID, r.SubAccountID, r.Cost, r.WalletMarkup = modelgate.KeyID(id(3)), p.id.SubAccountID, modelgate.Nano(1000+i*j), &markup
				want += r.Cost.Billed(markup)
				rows = append(rows, modelgate.Row(r.CallBegin, r.CallEnd))
			}
			to := modelgate.Markup(i * 1_000_000)
			must(p, p.PatchSubAccount(p.Context(), p.id.ClientID, p.id.SubAccountID, modelgate.SubAccountPatch{Markup: &to}, audit("sub_account.update")))
			book(p, p.DB, "i", rows...)
		}
		p.stands(1000*usd-want, 1000*usd-want)
	})
}

func TestWalletAlerts(t *testing.T) {
	eachPurse(t, func(p *purse) {
		low := 2 * usd
		p.put(func(s *wallet.Settings) { s.LowBalance = &low }) // low already
		p.wait(time.Second)
		p.add(wallet.Purchase, 5*usd, "a", 0)
		p.call(4*usd, 0, nil) // low
		p.call(usd/2, 0, nil) // still low
		p.call(1*usd, 0, nil) // exhausted
		p.wait(time.Second)
		p.add(wallet.Purchase, 5*usd, "b", 0)
		p.call(3*usd, 0, nil) // low again
		var got []string
		due, err := p.ClaimAlerts(p.Context(), spend.Operator, 100, 100, time.Minute)
		must(p, err)
		for _, a := range due {
			got = append(got, fmt.Sprintf("%s %s %s", a.Wallet(), a.Limit, a.Spend))
			must(p, p.FinishAlert(p.Context(), a))
		}
		want := map[string]int{"wallet.low_balance 2 0": 1, "wallet.credited 5 5": 1, "wallet.low_balance 2 1": 1, "wallet.exhausted 0 -0.5": 1, "wallet.credited 5 4.5": 1, "wallet.low_balance 2 1.5": 1}
		for _, g := range got {
			want[g]--
		}
		for text, n := range want {
			if n != 0 {
				t.Errorf("alerts %q: %d of %q missing", got, n, text)
			}
		}
	})
}

// A row is paid for by a wallet or exported, never both; and what pruned rows had
// debited is remembered.
func TestWalletOrExport(t *testing.T) {
	eachPurse(t, func(p *purse) {
		must(p, p.PutProcessorKey(p.Context(), p.id.ClientID, billing.ProcessorKey{KeyID: "k", Value: []byte("sealed")}, true, audit("processor.config.put")))
		must(p, p.PutMapping(p.Context(), p.id.ClientID, modelgate.Mapping{SubAccountID: p.id.SubAccountID, CustomerID: "cus_1"}, audit("processor.mapping.put")))
		p.add(wallet.Purchase, 5*usd, "a", 0)
		p.call(1*usd, 0, nil)
		p.call(1*usd, 0, func(r *modelgate.UsageRow) { r.WalletMarkup = nil })
		if n := number(t, p.DB, "SELECT COUNT(*) FROM processor_event"); n != 1 {
			t.Errorf("%d events, want that of the call that no wallet paid", n)
		}
		p.stands(4*usd, 4*usd)
		p.whole()
		compactAll(t, p.DB)
		for more := true; more; {
			var err error
			_, more, err = p.Prune(p.Context(), p.id.ClientID, noon.AddDate(0, 0, 2), 100)
			must(p, err)
		}
		if n := number(t, p.DB, "SELECT COUNT(*) FROM usage_row"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}
