package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"modelgate/internal/config"
)

// What an organization chose as its webhook is not connected to inside the
// operator's network, by address or by name, and no redirect leads there.
func TestAlertsStayOutOfTheNetwork(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(inside.Close)
	post := func(cfg config.Alerts, url string) (*http.Response, error) {
		client := newPublicClient(&config.Config{Settings: config.Settings{Alerts: cfg}})
		resp, err := client.Post(url, "application/json", strings.NewReader("{}"))
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	port := inside.URL[strings.LastIndexByte(inside.URL, ':'):]
	for _, host := range []string{"http://127.0.0.1", "http://localhost", "http://[::ffff:127.0.0.1]"} {
		if _, err := post(config.Alerts{}, host+port); err == nil || reached.Load() != 0 {
			t.Errorf("%s was connected to: %v", host, err)
		}
	}
	resp, err := post(config.Alerts{AllowPrivate: true}, inside.URL)
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect || reached.Load() != 1 {
		t.Errorf("with allow_private: %v, %v, reached %d times", resp, err, reached.Load())
	}
	if _, err := post(config.Alerts{AllowPrivate: true}, "http://169.254.169.254/latest"); err == nil || !strings.Contains(err.Error(), "metadata") {
		t.Errorf("the metadata service: %v", err)
	}
}
