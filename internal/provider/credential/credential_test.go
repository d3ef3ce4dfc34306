package credential

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]time.Duration{
		"": 30 * time.Second, "5": 5 * time.Second, "0.5": 500 * time.Millisecond, "1e9": 30 * time.Second, "999999": maxRest, "-4": 30 * time.Second, "x": 30 * time.Second,
		"Sat, 21 Nov 2026 12:01:00 GMT": time.Minute, "Sat, 21 Nov 2026 11:00:00 GMT": 0,
	}
	for value, want := range tests {
		if got := RetryAfter(value, now, 30*time.Second); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

// Nothing that prints a credential shows it.
func TestCredentialIsRedacted(t *testing.T) {
	t.Parallel()
	set, err := New(Config{Current: []string{"sk-secret-1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := set.Pick()
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %s", c, c); strings.Contains(text, "sk-secret-1") {
		t.Errorf("printed as %q", text)
	}
}
