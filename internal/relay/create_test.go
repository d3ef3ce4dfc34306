package relay

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/provider"
)

// A creation without a model is refused before anybody hears of it, and one
// whose END is not durable gives its client no id.
func TestCreation(t *testing.T) {
	t.Parallel()
	g, s := filming(t, Options{}, nil)
	if status, answer := g.asks(t, "POST /openai/v1/videos", `{"prompt":"x"}`); status != 400 || !strings.Contains(answer, "bad_request") {
		t.Errorf("%d %s, want 400", status, answer)
	}
	if came := s.heard(); len(came) != 0 {
		t.Errorf("the provider heard %q", came)
	}
	s.set("POST /v1/videos", `503 {}`)
	r := g.request(t.Context(), "/v1/videos", `{"model":"acme/film","seconds":"8"}`)
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d, X-Should-Retry %q", resp.StatusCode, resp.Header.Get("X-Should-Retry"))
	}
	s.set("POST /v1/videos", `200 {"id":"secret-id"}`)
	g.books.lost = errors.New("no disk")
	resp, err = g.client.Do(g.request(t.Context(), "/v1/videos", `{"model":"acme/film","seconds":"8"}`))
	if err == nil {
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(answer), "secret-id") {
			t.Errorf("the client has %s", answer)
		}
	}
}

// A creation goes on when its client leaves, whatever the provider's
// on_disconnect says and however many replies are read on already: the
// provider makes the job all the same.
func TestCreationOutlivesItsClient(t *testing.T) {
	t.Parallel()
	for _, policy := range []provider.Disconnect{provider.Cancel, provider.Drain} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			u := newTwoParts(t, "", sized("application/json", `{"id":"v1","status":"queued"}`))
			live := films(t, "sora", provider.Config{Format: "openai", BaseURL: u.URL, OnDisconnect: policy})
			g := open(t, "", plan{live: live, options: Options{DrainFor: time.Millisecond}})
			g.leaves(t, u, "/v1/videos", `{"model":"acme/film","seconds":"8"}`, "")
			select {
			case <-u.closed:
				t.Error("the gateway has hung up on the provider")
			case <-time.After(200 * time.Millisecond): // for it to notice that the client has left
			}
			close(u.proceed)
			end := g.books.only(t)
			if end.Job == nil || end.Job.TaskID != "v1" || end.StatusCode != 200 || end.ParseStatus != modelgate.ParseProvisional || end.Cost != 800_000_000 {
				t.Errorf("END %+v, job %+v", end, end.Job)
			}
			g.relay.Wait()
		})
	}
}

// A creation whose reply does not come, or not whole, leaves a row of which
// nothing is known, no job, and a client that is told not to ask again.
func TestCreationIsLost(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"no reply":   "",
		"broken off": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n" + `{"id":"v1"`,
		"not HTTP":   "lo\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
				_, _ = io.WriteString(conn, reply)
				return false
			})
			g := open(t, "", plan{live: films(t, "sora", provider.Config{Format: "openai", BaseURL: u.URL})})
			resp, err := g.client.Do(g.request(t.Context(), "/v1/videos", `{"model":"acme/film","seconds":"8"}`))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 502 || len(answer) != 0 || resp.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%d %q, X-Should-Retry %q, %v", resp.StatusCode, answer, resp.Header.Get("X-Should-Retry"), err)
			}
			if end := g.books.only(t); end.Job != nil || end.StatusCode != 502 || end.ParseStatus != modelgate.ParseUnknown || end.Cost != 0 {
				t.Errorf("END %+v, job %+v", end, end.Job)
			}
		})
	}
}
