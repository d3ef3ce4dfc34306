package modelgate

import (
	"strings"
	"testing"
	"time"
)

func TestParseMatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"model:openai/*":                       "model:openai/*",
		"model:a b":                            "model:a b",
		"tag:team=search":                      "tag:team=search",
		"tag:team=*":                           "tag:team=*",
		"tag:team=%2A":                         "tag:team=%2A",
		"tag:team=a%2Cb":                       "tag:team=a%2Cb",
		"tag:team=%61":                         "tag:team=a",
		"tag:team=":                            "tag:team=",
		"tag:a.b-c_d=x*":                       "tag:a.b-c_d=x%2A",
		"tag:t=" + strings.Repeat("x", 256):    "tag:t=" + strings.Repeat("x", 256),
		"":                                     "",
		"model:":                               "",
		"model:a\nb":                           "",
		"Model:a":                              "",
		"tag:team":                             "",
		"tag:=x":                               "",
		"tag:a b=x":                            "",
		"tag:team=%zz":                         "",
		"tag:team=%00":                         "",
		"tag:team=%ff":                         "",
		"tag:t=" + strings.Repeat("x", 257):    "",
		"model:" + strings.Repeat("x", 395):    "",
		"tag:" + strings.Repeat("k", 65) + "=": "",
	} {
		m, err := ParseMatch(text)
		if got := m.String(); got != want || (err != nil) != (want == "") {
			t.Errorf("ParseMatch(%q) = %q, %v; want %q", text, got, err, want)
		}
		if err != nil && KindOf(err) != BadRequest {
			t.Errorf("ParseMatch(%q): %v", text, err)
		}
	}
}

func TestMatchCounts(t *testing.T) {
	t.Parallel()
	slug := Traits{Slug: "openai/gpt-5", Provider: "azure", Model: "gpt5", KeyID: "k1", Attribution: map[string]string{"team": "search", "star": "*"}}
	native := Traits{Provider: "openai", Model: "gpt-5-mini"}
	for _, c := range []struct {
		match string
		call  Traits
		value string
		want  bool
	}{
		{"model:openai/*", slug, "", true},
		{"model:azure/*", slug, "", false},
		{"model:openai/gpt-5", native, "", false},
		{"model:openai/gpt-5*", native, "", true},
		{"tag:team=search", slug, "", true},
		{"tag:team=other", slug, "", false},
		{"tag:team=", slug, "", false},
		{"tag:team=", native, "", true},
		{"tag:team=*", slug, "search", true},
		{"tag:team=*", native, "", false},
		{"tag:star=%2A", slug, "", true},
		{"tag:star=*", slug, "*", true},
		{"tag:key_id=k1", slug, "", true},
		{"tag:key_id=*", slug, "k1", true},
		{"tag:sub_account_id=", slug, "", true},
	} {
		m, err := ParseMatch(c.match)
		if err != nil {
			t.Fatal(err)
		}
		if value, counts := m.Counts(&c.call); value != c.value || counts != c.want {
			t.Errorf("%s of %+v = %q, %v; want %q, %v", c.match, c.call, value, counts, c.value, c.want)
		}
	}
	if _, counts := (*Match)(nil).Counts(&slug); !counts {
		t.Error("no match does not count a call")
	}
}

// An exact value takes the place of the match of each value, of the same owner,
// target and period alone.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	rule := func(match string, level Level, p Period, o Owner) *Budget {
		m, err := ParseMatch(match)
		if err != nil {
			t.Fatal(err)
		}
		return &Budget{Level: level, ID: "x", Period: p, Owner: o, Match: m}
	}
	each := rule("tag:end_user=*", LevelClient, Week, OwnerOrganization)
	others := []*Budget{
		rule("tag:end_user=*", LevelClient, Day, OwnerOrganization), rule("tag:end_user=*", LevelClient, Week, OwnerOperator),
		rule("tag:end_user=*", LevelKey, Week, OwnerOrganization), rule("tag:team=*", LevelClient, Week, OwnerOrganization),
	}
	TakeOver(append([]*Budget{each, rule("tag:end_user=vip", LevelClient, Week, OwnerOrganization), rule("model:vip", LevelClient, Week, OwnerOrganization)}, others...))
	vip := Traits{Attribution: map[string]string{"end_user": "vip", "team": "vip"}}
	if _, counts := each.Match.Counts(&vip); counts || each.Match.Value(&vip) != "vip" {
		t.Error("the match of each value counts vip, which has a budget of its own")
	}
	if _, counts := each.Match.Counts(&Traits{Attribution: map[string]string{"end_user": "u"}}); !counts {
		t.Error("the match of each value does not count u")
	}
	for _, b := range others {
		if _, counts := b.Match.Counts(&vip); !counts {
			t.Errorf("%s of %s, %s, %s does not count vip", b.Match, b.Level, b.Period, b.Owner)
		}
	}
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for d := range 14 {
		at := monday.AddDate(0, 0, d).Add(time.Duration(d) * time.Hour)
		start := monday.AddDate(0, 0, d/7*7)
		if got := Week.Start(at); !got.Equal(start) {
			t.Errorf("the week of %v begins %v", at, got)
		}
		if got := Week.End(at); !got.Equal(start.AddDate(0, 0, 7)) {
			t.Errorf("the week of %v ends %v", at, got)
		}
	}
	if Ever.StartMicros(monday) != 0 || !Ever.End(monday).IsZero() {
		t.Error("ever begins or ends")
	}
	week, total, other, empty := "week", "total", "hour", ""
	for _, c := range []struct {
		period string
		window *string
		want   Period
		err    string
	}{
		{"day", nil, Day, ""}, {"month", nil, Month, ""}, {"", &week, Week, ""}, {"", &total, Ever, ""},
		{"", nil, "", "period must be month or day"}, {"week", nil, "", "period must be month or day"},
		{"day", &week, "", "period and window exclude each other"},
		{"", &other, "", "window must be week or total"}, {"", &empty, "", "window must be week or total"},
	} {
		got, err := ParsePeriod(c.period, c.window)
		if text := ""; err != nil {
			text = err.Error()
			if text != c.err {
				t.Errorf("%q, %v: %v", c.period, c.window, err)
			}
		} else if got != c.want || c.err != "" {
			t.Errorf("%q, %v = %q", c.period, c.window, got)
		}
	}
}

func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	m, _ := ParseMatch("tag:a=b")
	want := []*Budget{
		{Level: LevelClient, Period: Total},
		{Level: LevelClient, Period: Day}, {Level: LevelClient, Period: Week, Rule: 9}, {Level: LevelClient, Period: Month}, {Level: LevelClient, Period: Ever, Rule: 1},
		{Level: LevelClient, Period: Day, Match: m, Rule: 3}, {Level: LevelClient, Period: Ever, Match: m, Rule: 2},
		{Level: LevelSubAccount, Period: Month}, {Level: LevelSubAccount, Period: Day, Match: m, Rule: 4},
		{Level: LevelKey, Period: Week, Rule: 5}, {Level: LevelKey, Generation: 1, Period: Day}, {Level: LevelKey, Generation: 2, Period: Day},
	}
	got := make([]*Budget, len(want))
	for i, b := range want {
		got[(i*5+3)%len(want)] = b
	}
	SortRules(got)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("place %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
