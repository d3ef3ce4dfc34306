package gateway

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/budget"
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
			g.gateway.Wait()
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

// A film that was not asked to have a length is taken to have the provider's
// usual one.
func TestFilmWithoutLength(t *testing.T) {
	t.Parallel()
	s := newStudio(t, map[string]string{"POST /v1/videos/generations": `200 {"request_id":"x1"}`})
	x := newTill(t, money{mode: budget.Estimate, key: rich})
	g := x.open("", plan{live: films(t, "m", provider.Config{Format: "xai", BaseURL: s.URL})})
	if status, answer := g.asks(t, "POST /v1/videos", `{"model":"acme/film","prompt":"x"}`); status != 200 {
		t.Fatalf("creation: %d %s", status, answer)
	}
	const want = 800_000_000
	if end := g.books.only(t); end.Cost != want || end.Job == nil || end.Job.Reserve != 0 {
		t.Errorf("END %+v, job %+v, want one of %s", end, end.Job, modelgate.Nano(want))
	}
	if held := x.held(); held < want {
		t.Errorf("%s are held, want %s", held, modelgate.Nano(want))
	}
}

// A film that the provider counts in tokens is held and booked at those that
// it will probably have, until the provider says how many they were.
func TestTokensOfAFilm(t *testing.T) {
	t.Parallel()
	film := &modelgate.Model{Slug: "acme/film", Kind: modelgate.Video, Price: new(modelgate.Price), Routes: []modelgate.Route{{Provider: "ark", Model: "m"}}}
	if err := film.Price.Base.Set(modelgate.UnitOutput, 7*modelgate.USD); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body string
		want modelgate.Nano
	}{
		"nothing said": {`{"model":"acme/film","content":[]}`, 756_000_000},
		"all said":     {`{"model":"acme/film","content":[],"resolution":"1080p","duration":10}`, 3_402_000_000},
		"small":        {`{"model":"acme/film","content":[],"resolution":"480p","duration":-1}`, 1_020_600_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const tasks = " /api/v3/contents/generations/tasks"
			s := newStudio(t, map[string]string{
				"POST" + tasks: `200 {"id":"cgt-1"}`, "GET" + tasks + "/cgt-1": `200 {"status":"succeeded","usage":{"completion_tokens":100000}}`,
			})
			x := newTill(t, money{mode: budget.Estimate, key: rich})
			g := x.open("", plan{live: liveOf(t, []*modelgate.Model{film}, provider.Config{Format: "ark", BaseURL: s.URL})})
			if status, answer := g.asks(t, "POST /v1/videos", tt.body); status != 200 {
				t.Fatalf("creation: %d %s", status, answer)
			}
			if end := g.books.only(t); end.Cost != tt.want || end.ParseStatus != modelgate.ParseProvisional {
				t.Errorf("END %+v, want a provisional cost of %s", end, tt.want)
			}
			if held := x.held(); held < tt.want {
				t.Errorf("%s are held, want %s", held, tt.want)
			}
			if status, answer := g.asks(t, "GET /v1/videos/cgt-1", ""); status != 200 {
				t.Errorf("poll: %d %s", status, answer)
			}
			if f := g.jobs.only(t); f.Status != modelgate.JobSucceeded || f.Cost != 700_000_000 || f.ParseStatus != modelgate.ParseOK {
				t.Errorf("the job has %+v", f)
			}
		})
	}
}
