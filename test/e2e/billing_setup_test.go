package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// The keys that organizations have at the processor. Nothing of them may come
// out, not even their ends.
const (
	sellerKey   = "sk_test_seller_W9tKq2VxB7nRj4Zp"
	operatorKey = "sk_test_operator_H3mYc8LdT5sGf6Qa"
)

// seller is an organization that bills its end customers.
type seller struct {
	*world
	processor *testkit.Processor
	customers []endCustomer
}

// endCustomer is a sub-account with a key.
type endCustomer struct{ sub, key, customer string }

// newSeller starts a gateway with a processor behind it, the export enabled,
// and so many end customers that are mapped.
func newSeller(t *testing.T, o testkit.GatewayOptions, customers int) *seller {
	t.Helper()
	p := testkit.NewProcessor(t, sellerKey, operatorKey)
	o.More += p.Config(operatorKey)
	s := &seller{world: newWorld(t, o), processor: p}
	s.want(204, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, sellerKey))
	for i := range customers {
		s.customers = append(s.customers, s.endCustomer(i))
	}
	return s
}

func (s *seller) endCustomer(i int) endCustomer {
	s.t.Helper()
	e := endCustomer{customer: fmt.Sprint("cus_end_", i)}
	e.sub = s.want(200, "POST /gw/subaccounts", fmt.Sprintf(`{"name":"End %d","slug":"end-%d"}`, i, i))["id"].(string)
	s.want(204, "PATCH /gw/subaccounts/"+e.sub, fmt.Sprintf(`{"markup_pct":%d.000001}`, 7*i))
	s.mapTo(e, e.customer)
	e.key, _ = s.NewKey(s.client, "--sub-account", e.sub)
	return e
}

func (s *seller) mapTo(e endCustomer, customer string) {
	s.t.Helper()
	s.want(204, "PUT /gw/processor/mappings/"+e.sub, fmt.Sprintf(`{"stripe_customer_id":%q}`, customer))
}

// ask makes a request with a key; the target is method and path.
func (w *world) ask(key, target, body string) (int, string) {
	w.t.Helper()
	method, path, _ := strings.Cut(target, " ")
	status, text, err := send(w.t.Context(), method, w.URL+path, key, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return status, text
}

// send makes a request, with a key unless that is empty.
func send(ctx context.Context, method, url, key, body string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

// want is ask as the organization's manager, which must be answered so.
func (w *world) want(status int, target, body string) map[string]any {
	w.t.Helper()
	got, text := w.ask(w.key, target, body)
	if got != status {
		w.t.Fatalf("%s: %d %s, want %d", target, got, text, status)
	}
	var object map[string]any
	if text != "" {
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			w.t.Fatalf("%s: %v\n%s", target, err, text)
		}
	}
	return object
}

// post makes one call of an end customer, which must succeed, and returns the
// answer and the call's id.
func (w *world) post(key, path, body string) (answer, id string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
	}
	return string(text), resp.Header.Get("X-Gateway-Request-Id")
}

// call makes one call of an end customer and returns its id.
func (w *world) call(key string) (id string) {
	w.t.Helper()
	_, id = w.post(key, "/v1/chat/completions", chat)
	return id
}

// film has a video made and returns the job's id and the call's.
func (w *world) film(key, body string) (job, id string) {
	w.t.Helper()
	answer, id := w.post(key, "/v1/videos", body)
	var video struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &video); err != nil || video.ID == "" {
		w.t.Fatalf("%v\n%s", err, answer)
	}
	return video.ID, id
}

// outboxEvent is an event as it stands in the database.
type outboxEvent struct {
	usage, customer, status, lastError string
	value                              int64
	unsure                             bool
}

// outbox reads every event that was queued, past the gateway.
func readOutbox(t *testing.T, driver, source string) []outboxEvent {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT usage_id, customer_id, status, last_error, value, unsure_at <> 0 FROM processor_event WHERE status <> 'carried'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []outboxEvent
	for rows.Next() {
		var e outboxEvent
		if err := rows.Scan(&e.usage, &e.customer, &e.status, &e.lastError, &e.value, &e.unsure); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// statement compares a processor's ledger with an outbox.
type statement struct {
	events, sent, failed, ambiguous, pending int
	outbox, ledger                           int64 // micro-USD: of what was sent, and of what was counted
	twice, missing, foreign, unequal         int
	failedButCounted                         int
}

func compareBills(ledger []testkit.Counted, outbox []outboxEvent) statement {
	st := statement{events: len(outbox)}
	counted := map[string][]testkit.Counted{}
	for _, c := range ledger {
		counted[c.Identifier] = append(counted[c.Identifier], c)
	}
	for _, e := range outbox {
		c := counted[e.usage]
		delete(counted, e.usage)
		if len(c) > 1 {
			st.twice++
		}
		for _, one := range c {
			if one.Value != e.value || one.Customer != e.customer {
				st.unequal++
			}
		}
		switch e.status {
		case "sent":
			st.sent++
			st.outbox += e.value
			if len(c) == 0 {
				st.missing++
			}
			for _, one := range c {
				st.ledger += one.Value
			}
		case "failed":
			st.failed++
			if strings.HasPrefix(e.lastError, "ambiguous") {
				st.ambiguous++
			}
			if len(c) > 0 {
				st.failedButCounted++
			}
		default:
			st.pending++
		}
	}
	st.foreign = len(counted)
	return st
}

// right reports every way in which the two disagree.
func (st statement) right(t *testing.T) {
	t.Helper()
	if st.twice+st.missing+st.foreign+st.unequal > 0 || st.outbox != st.ledger {
		t.Errorf("the processor's ledger is not the outbox: %+v", st)
	}
}

// dump is everything that a database holds, as text.
func dump(t *testing.T, driver, source string) string {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if driver == "pgx" {
		names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var out bytes.Buffer
	for _, table := range column(t, db, names) {
		rows, err := db.Query(`SELECT * FROM "` + table + `"`)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = new(any)
			}
			if err := rows.Scan(cells...); err != nil {
				t.Fatal(err)
			}
			for _, c := range cells {
				v := *c.(*any)
				if b, ok := v.([]byte); ok {
					v = string(b)
				}
				fmt.Fprintln(&out, v)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return out.String()
}

func column(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
