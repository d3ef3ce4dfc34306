package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// prepaidCustomer is an end customer's wallet, and what must have been entered in it.
type prepaidCustomer struct {
	sub, key string
	credits  modelgate.Nano // payments less what of them was refunded or disputed, grants, adjustments
}

// step is one thing that is done to the gateway. It reports whether it is done; else
// it is tried again.
type step func() bool

// walletRun is many customers who pay and call at the same time.
type walletRun struct {
	*prepaid
	ctx       context.Context
	urls      []func() string // of the instances
	customers []*prepaidCustomer
	random    *rand.Rand
	orders    int
	progress  atomic.Int64 // of a thousand for each round
	again     atomic.Int64 // steps that had to be done again
	outcomes  sync.Map     // status of a call → *atomic.Int64
	sent      atomic.Int64 // deliveries that were taken
}

// url is one of the instances, in turn.
func (b *walletRun) url(n int) string { return b.urls[n%len(b.urls)]() }

// do makes a request to an instance; 0 is no answer.
func (b *walletRun) do(n int, key, target, body string) (status int, text string) {
	method, path, _ := strings.Cut(target, " ")
	status, text, err := send(b.ctx, method, b.url(n)+path, key, body)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // nobody listens: the process is being started again
		return 0, ""
	}
	return status, text
}

// retry is a step by a request that may be repeated.
func (b *walletRun) retry(key, target, body string, want int) step {
	n := b.random.Int()
	return func() bool {
		n++
		status, text := b.do(n, key, target, body)
		if status != want && status != 0 && status != http.StatusServiceUnavailable {
			b.t.Errorf("%s %s: %d %s", target, body, status, text)
			return true
		}
		return status == want
	}
}

// notify is a step by a delivery.
func (b *walletRun) notify(make func() (body []byte, signature string)) step {
	n := b.random.Int()
	return func() bool {
		n++
		body, signature := make()
		status, err := postNotice(b.ctx, b.url(n)+b.webhook(), body, signature)
		switch {
		case err != nil:
			time.Sleep(10 * time.Millisecond)
		case status == http.StatusNoContent:
			b.sent.Add(1)
		case status != http.StatusServiceUnavailable:
			b.t.Errorf("a delivery: %d", status)
		}
		return status == http.StatusNoContent
	}
}

// call is a step by a call that may come to nothing.
func (b *walletRun) call(key, path, body string) step {
	n := b.random.Int()
	return func() bool {
		status, text := b.do(n, key, "POST "+path, body)
		switch status {
		case 0, http.StatusOK, http.StatusPaymentRequired, http.StatusServiceUnavailable:
		default:
			b.t.Errorf("a call: %d %s", status, text)
		}
		count, _ := b.outcomes.LoadOrStore(status, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		return true
	}
}

// all does steps at once, each until it is done. Progress goes from one value to
// another meanwhile.
func (b *walletRun) all(steps []step, from, to int64) {
	const senders = 8
	var next, done atomic.Int64
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(steps); n = int(next.Add(1)) - 1 {
				for !steps[n]() {
					if b.ctx.Err() != nil {
						b.t.Error("a step is never done")
						return
					}
					b.again.Add(1)
				}
				b.progress.Store(from + (to-from)*done.Add(1)/int64(len(steps)))
			}
		})
	}
	work.Wait()
}

// round has every customer pay a few orders, of which parts are refunded and
// disputed; delivers all of that three times and shuffled, among grants, calls, jobs
// and changes of the markup.
func (b *walletRun) round(number, each int) {
	const cent = modelgate.USD / 100
	var begins, steps []step
	var mu sync.Mutex
	for _, p := range b.customers {
		for range each {
			b.orders++
			order, cents := b.orders, 500+b.random.IntN(10_000)
			claims := b.claims(order, cents)
			early := b.random.IntN(2) == 0
			kept := cents
			for _, c := range claims {
				if c.Status == "succeeded" || c.Status == "lost" {
					kept -= int(c.Amount)
				}
			}
			p.credits += modelgate.Nano(max(kept, 0)) * cent
			n := b.random.Int()
			begins = append(begins, func() bool {
				n++
				status, text := b.do(n, p.key, "POST /gw/wallet/checkout", fmt.Sprintf(`{"amount_usd":%d.%02d}`, cents/100, cents%100))
				if status != http.StatusOK {
					return false
				}
				paid := b.processor.Pay(sessionIn(b.t, text))
				mu.Lock()
				defer mu.Unlock()
				steps = append(steps, b.notify(func() ([]byte, string) { return b.processor.Notice(completed, paid) }))
				for _, c := range claims {
					c.PaymentIntent = *paid.PaymentIntent
					b.claim(c, early, &steps)
				}
				return true
			})
		}
	}
	from := int64(number) * 1000
	b.all(begins, from, from+300)
	steps = append(append(steps, steps...), steps...)
	for _, p := range b.customers {
		steps = append(steps, b.others(p, number)...)
	}
	b.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	b.all(steps, from+300, from+1000)
}

// claims are refunds and disputes as they end.
func (b *walletRun) claims(order, cents int) (all []testkit.PayClaim) {
	for i := range b.random.IntN(3) {
		c := testkit.PayClaim{ID: fmt.Sprintf("re_%d_%d", order, i), Object: "refund", Amount: int64(1 + b.random.IntN(cents)), Status: []string{"succeeded", "failed"}[b.random.IntN(2)]}
		if b.random.IntN(2) == 0 {
			c.ID, c.Object, c.Status = fmt.Sprintf("dp_%d_%d", order, i), "dispute", []string{"lost", "won"}[b.random.IntN(2)]
		}
		all = append(all, c)
	}
	return all
}

// claim makes a claim at the processor, and the deliveries about it. One that is
// early was delivered first as it was at its beginning.
func (b *walletRun) claim(last testkit.PayClaim, early bool, steps *[]step) {
	first, events := "pending", []string{"refund.created", "refund.updated"}
	if last.Object == "dispute" {
		first, events = "under_review", []string{"charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.closed"}
	}
	if early {
		begun := last
		begun.Status = first
		b.processor.Claim(begun)
		for deliver := b.notify(func() ([]byte, string) { return b.processor.ClaimNotice(events[0], begun) }); !deliver() && b.ctx.Err() == nil; {
			b.again.Add(1)
		}
	}
	b.processor.Claim(last)
	for _, event := range events {
		*steps = append(*steps, b.notify(func() ([]byte, string) { return b.processor.ClaimNotice(event, last) }))
	}
}

// others are what else happens to a wallet in a round: credits by the reseller, sent
// three times, another markup, calls and jobs.
func (b *walletRun) others(p *prepaidCustomer, number int) (steps []step) {
	grant := modelgate.Nano(1+b.random.IntN(400)) * modelgate.USD / 100
	fee := modelgate.Nano(1+b.random.IntN(50)) * modelgate.USD / 100
	p.credits += grant - fee
	soon := time.Now().Add(size(time.Hour, 5*time.Minute)).UTC().Format(time.RFC3339)
	for range 3 {
		steps = append(steps,
			b.retry(b.key, "POST /gw/wallets/"+p.sub+"/entries", fmt.Sprintf(`{"kind":"grant","amount_usd":%s,"expires_at":%q,"external_id":"grant-%d"}`, grant, soon, number), 200),
			b.retry(b.key, "POST /gw/wallets/"+p.sub+"/entries", fmt.Sprintf(`{"kind":"adjustment","amount_usd":-%s,"external_id":"fee-%d"}`, fee, number), 200))
	}
	steps = append(steps, b.retry(b.key, "PATCH /gw/subaccounts/"+p.sub, fmt.Sprintf(`{"markup_pct":%d.%06d}`, b.random.IntN(90), b.random.IntN(1_000_000)), 204))
	for range 4 {
		steps = append(steps, b.call(p.key, "/v1/chat/completions", fmt.Sprintf(`{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"[[words=%d]]"}]}`, 1+b.random.IntN(2000))))
	}
	for _, ends := range []string{"", " [[job=failed]]"} {
		steps = append(steps, b.call(p.key, "/v1/videos", fmt.Sprintf(`{"model":"openai/sora-2","prompt":"a kite [[polls=1]]%s","seconds":"%d"}`, ends, 1+b.random.IntN(12))))
	}
	return steps
}

// TestBillingWallets has customers pay, be refunded, dispute, be granted credits,
// call and have videos made, everything delivered three times and shuffled, while the
// gateway is killed again and again. In the end each wallet's balance is what was
// entered less what its rows were debited.
func TestBillingWallets(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		const each = 5 // orders of a customer in a round
		customers, orders, kills := size(4, 40), size(200, 5000), size(5, 50)
		if database != "" && !*full {
			orders, kills = orders/2, kills/2
		}
		rounds := orders / customers / each
		ctx, cancel := context.WithTimeout(t.Context(), size(5*time.Minute, time.Hour))
		defer cancel()
		b := &walletRun{prepaid: newPrepaid(t, testkit.GatewayOptions{Database: database}), ctx: ctx, random: rand.New(rand.NewPCG(5, 6))}
		b.urls = []func() string{func() string { address, _ := b.target.get(); return "http://" + address }}
		var second *testkit.Gateway
		if database != "" {
			second = testkit.StartGateway(t, testkit.GatewayOptions{Database: database, Upstream: b.upstream.URL, More: b.processor.Config(operatorKey)})
			b.urls = append(b.urls, func() string { return second.URL })
		}
		for i := range customers {
			sub, key := b.customer(fmt.Sprint("customer-", i), "20", `,"on_chargeback":"debit"`)
			b.customers = append(b.customers, &prepaidCustomer{sub: sub, key: key})
		}
		began := time.Now()
		over := make(chan struct{})
		go func() {
			defer close(over)
			for i := range rounds {
				b.round(i, each)
			}
		}()
		for i := range kills {
			b.eventually("orders are paid", size(5*time.Minute, time.Hour), func() bool { return b.progress.Load() > int64(i+1)*int64(rounds)*1000/int64(kills+1) })
			b.Kill()
			b.restart()
		}
		<-over
		took := time.Since(began)
		b.eventually("the jobs have ended", 5*time.Minute, func() bool {
			_, text := b.ask(b.key, "GET /gw/async?status=pending", "")
			return strings.Contains(text, `"data":[]`)
		})
		freed := b.eventually("nothing is held", 2*time.Minute, b.nothingHeld)
		if second != nil {
			second.Stop()
		}
		b.settle()
		total := b.judge()
		fmt.Fprintf(t.Output(), "wallets under kill -9, %s: %d orders of %d customers, %d deliveries, %d kills, %d steps again; calls and jobs by status: %s; %s; %.1f s, nothing held %.1f s later\n",
			t.Name(), b.orders, customers, b.sent.Load(), kills, b.again.Load(), b.statuses(), total, took.Seconds(), freed.Seconds())
	})
}

// nothingHeld reports whether all that was reserved has come back, that of killed
// instances too.
func (b *walletRun) nothingHeld() bool {
	status, text := b.ask(b.key, "GET /gw/wallets", "")
	return status == http.StatusOK && strings.Count(text, `"held_usd":0,`) == len(b.customers)
}

func (b *walletRun) statuses() string {
	var out []string
	for _, status := range []int{0, http.StatusOK, http.StatusPaymentRequired, http.StatusServiceUnavailable} {
		if n, ok := b.outcomes.Load(status); ok {
			out = append(out, fmt.Sprintf("%d %d times", status, n.(*atomic.Int64).Load()))
		}
	}
	return strings.Join(out, ", ")
}

// judge holds each wallet against what was entered, by the processor's account and
// the test's own, and against its rows. The gateway has ended.
func (b *walletRun) judge() string {
	b.t.Helper()
	db, err := sql.Open(b.driver, b.source)
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	var credits, expired, debited modelgate.Nano
	rows := 0
	for _, p := range b.customers {
		debits, n := b.debits(db, p)
		var gone modelgate.Nano // what expired: only the sweep knows how much was left
		if err := db.QueryRow("SELECT COALESCE(-SUM(amount), 0) FROM wallet_entry WHERE kind = 'expiry' AND sub_account_id = $1", p.sub).Scan(&gone); err != nil {
			b.t.Fatal(err)
		}
		var w struct {
			Balance modelgate.Nano `json:"balance_usd"`
			Held    modelgate.Nano `json:"held_usd"`
		}
		b.Admin(&w, "wallet", "show", "--client", string(b.client), "--sub-account", p.sub)
		if want := p.credits - gone - debits; w.Balance != want || w.Held != 0 {
			b.t.Errorf("%s: balance %s, held %s; entered were %s, expired %s, debited %s, so that %s are left", p.sub, w.Balance, w.Held, p.credits, gone, debits, want)
		}
		credits, expired, debited, rows = credits+p.credits, expired+gone, debited+debits, rows+n
	}
	if rows == 0 || debited == 0 {
		b.t.Error("nothing was debited")
	}
	var exported int
	if err := db.QueryRow("SELECT COUNT(*) FROM processor_event").Scan(&exported); err != nil || exported > 0 {
		b.t.Errorf("%d events for calls that wallets paid, %v", exported, err)
	}
	if stdout, _, code := b.Run("reconcile", "--config", b.ConfigFile); code != 0 {
		b.t.Errorf("reconcile: exit %d\n%s", code, stdout)
	}
	if b.t.Failed() {
		b.t.Logf("the gateway's log ends with\n%s", tail(b.Log(), 4000))
	}
	return fmt.Sprintf("entered %s, expired %s, debited %s by %d rows", credits, expired, debited, rows)
}

// debits are what a customer's rows come to, each at the markup that it names.
func (b *walletRun) debits(db *sql.DB, p *prepaidCustomer) (sum modelgate.Nano, n int) {
	b.t.Helper()
	rows, err := db.Query("SELECT cost, wallet_markup, wallet_debit FROM usage_row WHERE sub_account_id = $1", p.sub)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var cost, debit modelgate.Nano
		var markup *modelgate.Markup
		if err := rows.Scan(&cost, &markup, &debit); err != nil {
			b.t.Fatal(err)
		}
		if markup == nil || debit != markup.Debit(cost) {
			b.t.Errorf("a row that cost %s was debited %s at %v", cost, debit, markup)
		}
		sum += debit
		n++
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return sum, n
}
