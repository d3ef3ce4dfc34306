package operator

import (
	"slices"
	"testing"
	"time"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	one := instanceView{ID: "one", SeenAt: now.Add(-5 * time.Second), About: About{Version: "1", ConfigHash: "a"}}
	with := func(change func(*instanceView)) []instanceView {
		two := one
		two.ID = "two"
		change(&two)
		return []instanceView{one, two}
	}
	for name, c := range map[string]struct {
		instances []instanceView
		providers []providerView
		want      []string
	}{
		"nothing":        {instances: []instanceView{one}},
		"alike":          {instances: with(func(*instanceView) {})},
		"silent":         {instances: with(func(i *instanceView) { i.SeenAt, i.Version = now.Add(-61*time.Second), "0" }), want: []string{"instance two was not seen for 1m1s"}},
		"versions":       {instances: with(func(i *instanceView) { i.Version = "2" }), want: []string{"instances run 2 versions"}},
		"configurations": {instances: with(func(i *instanceView) { i.ConfigHash = "b" }), want: []string{"instances run 2 configurations"}},
		"spool":          {instances: with(func(i *instanceView) { i.SpoolOldestSeconds = 7 }), want: []string{"instance two cannot book its calls for 7 seconds"}},
		"quarantine":     {instances: with(func(i *instanceView) { i.Quarantined = 3 }), want: []string{"instance two keeps 3 damaged places or entries of its spool aside"}},
		"providers": {providers: []providerView{{Name: "a", Status: providerDown}, {Name: "b", Status: providerOK}, {Name: "c", Status: providerDegraded}, {Name: "d", Status: providerIdle}},
			want: []string{"provider a is down", "provider c is degraded"}},
	} {
		v := healthView{Instances: c.instances}
		if v.warn(now, c.providers); !slices.Equal(v.Warnings, c.want) {
			t.Errorf("%s: %q, want %q", name, v.Warnings, c.want)
		}
	}
}

func TestProviderStates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls map[int]int64
		want  providerState
	}{
		{nil, providerIdle},
		{map[int]int64{200: 1}, providerOK},
		{map[int]int64{500: 4}, providerOK},
		{map[int]int64{500: 5}, providerDown},
		{map[int]int64{401: 3, 429: 1, 504: 1}, providerDown},
		{map[int]int64{400: 50}, providerOK},
		{map[int]int64{400: 50, 502: 5}, providerDown},
		{map[int]int64{200: 45, 500: 5}, providerDegraded},
		{map[int]int64{200: 46, 500: 5}, providerOK},
		{map[int]int64{200: 4, 500: 4}, providerOK},
	} {
		var calls providerCalls
		for status, n := range c.calls {
			calls.add(status, n)
		}
		if got := calls.state(); got != c.want {
			t.Errorf("%v is %s, want %s", c.calls, got, c.want)
		}
	}
}
