package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestBillingPayments delivers each of many payments several times, at once
// and to every instance, while the gateway is killed again and again: each is
// credited, and once.
func TestBillingPayments(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		const copies, couriers = 5, 8
		orders, kills := size(30, 1000), size(2, 20)
		p := newPayer(t, testkit.GatewayOptions{Database: database})
		urls := []func() string{func() string { address, _ := p.target.get(); return "http://" + address }}
		if database != "" {
			second := testkit.StartGateway(t, testkit.GatewayOptions{Database: database, Upstream: p.upstream.URL, More: p.processor.Config(operatorKey)})
			urls = append(urls, func() string { return second.URL })
		}
		var deliveries []testkit.PaySession
		cents := 0
		for i := range orders {
			_, session := p.order(fmt.Sprintf("%d.%02d", 5+i%7, i%100))
			cents += 100*(5+i%7) + i%100
			for range copies {
				deliveries = append(deliveries, p.processor.Pay(session))
			}
		}
		rand.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		var next, done, tries atomic.Int64
		var work sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for range couriers {
			work.Go(func() {
				for n := int(next.Add(1)) - 1; n < len(deliveries); n = int(next.Add(1)) - 1 {
					for i := n; !p.carry(ctx, urls[i%len(urls)](), deliveries[n]); i++ {
						tries.Add(1)
					}
					done.Add(1)
				}
			})
		}
		for i := range kills {
			p.eventually("payments are delivered", 5*time.Minute, func() bool { return done.Load() > int64((i+1)*len(deliveries)/(kills+1)) })
			p.Kill()
			p.restart()
		}
		work.Wait()
		p.settle()
		wantCredits(t, p, orders, cents)
		fmt.Fprintf(t.Output(), "payments under kill -9, %s: %d orders, %d deliveries each, %d kills, %d deliveries that had to come again; %d.%02d USD credited\n",
			t.Name(), orders, copies, kills, tries.Load(), cents/100, cents%100)
	})
}

// carry delivers a payment as the processor does, and reports whether it need
// not come again.
func (p *payer) carry(ctx context.Context, url string, s testkit.PaySession) bool {
	if ctx.Err() != nil {
		p.t.Error("a delivery is never taken")
		return true
	}
	body, signature := p.processor.Notice(completed, s)
	status, err := postNotice(ctx, url+"/webhooks/processor", body, signature)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // nobody listens: the process is being started again
	}
	return status == http.StatusNoContent
}

// wantCredits reads what was credited past the gateway, which has ended.
func wantCredits(t *testing.T, p *payer, orders, cents int) {
	t.Helper()
	db, err := sql.Open(p.driver, p.source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var entries, sum, paid int64
	if err := db.QueryRow("SELECT COUNT(*), SUM(amount) FROM balance_entry").Scan(&entries, &sum); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT COUNT(*) FROM checkout_order WHERE status = 'paid'").Scan(&paid); err != nil {
		t.Fatal(err)
	}
	if entries != int64(orders) || paid != int64(orders) || sum != int64(cents)*10_000_000 {
		t.Errorf("%d credits of %d nano-USD, %d orders paid; want %d of %d cents", entries, sum, paid, orders, cents)
	}
	if stdout, _, code := p.Run("reconcile", "--config", p.ConfigFile); code != 0 {
		t.Errorf("reconcile: exit %d\n%s", code, stdout)
	}
}
