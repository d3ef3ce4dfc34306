package cli

import (
	"strings"
	"testing"

	"modelgate"
)

// The operator sets limits of its own, by any window, and removes anybody's.
func TestLimitCommands(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	const of = "--client acme --scope client "
	var set limitRow
	b.command(t, exitOK, &set, strings.Fields("limit set "+of+"--unit tokens --window day --limit 5000000 --match model:openai/*")...)
	want := limitRow{ClientID: b.client, Scope: modelgate.LevelClient, ID: string(b.client), Match: "model:openai/*", Unit: modelgate.UnitTokens,
		Window: "day", Owner: modelgate.OwnerOperator, Limit: 5_000_000 * modelgate.USD, Burst: 5_000_000 * modelgate.USD}
	if set != want {
		t.Errorf("set %+v, want %+v", set, want)
	}
	b.command(t, exitOK, nil, strings.Fields("limit set "+of+"--unit usd --window minute --limit 0.25 --burst 1.5")...)
	b.command(t, exitOK, nil, strings.Fields("limit set --client acme --scope key --id "+string(b.key)+" --unit concurrency --limit 3")...)
	var list []limitRow
	b.command(t, exitOK, &list, "limit", "list", "--client", "acme")
	if len(list) != 3 || list[0].Owner != modelgate.OwnerOperator || list[2].Limit != 3*modelgate.USD {
		t.Errorf("listed %+v", list)
	}
	if table := b.command(t, exitOK, nil, "limit", "list"); !strings.Contains(table, "5000000") || !strings.Contains(table, "0.25") {
		t.Errorf("listed\n%s", table)
	}
	for args, message := range map[string]string{
		"limit set " + of + "--unit tokens --window day --limit 1.5":                     "must be a whole number for unit tokens",
		"limit set " + of + "--unit tokens --window second --limit 1":                    "window must be minute, hour or day for unit tokens",
		"limit set " + of + "--unit tokens --window hour --limit 1 --burst 2":            "burst must be left out for window hour",
		"limit set " + of + "--unit requests --window hour --limit x":                    "--limit",
		"limit set " + of + "--unit requests --window hour --limit 1 --match x":          "match must be model:GLOB or tag:KEY=VALUE",
		"limit set --client acme --scope client --id x --unit concurrency --limit 1":     "--id must be left out for scope client",
		"limit set --client acme --scope key --id none --unit concurrency --limit 1":     "limit target not found",
		"limit remove " + of + "--unit requests --window hour":                           "limit not found",
		"limit remove " + of + "--unit usd --window minute --owner organization":         "set by the operator",
		"limit remove --client acme --scope key --id x --unit tokens --window fortnight": "",
	} {
		code := exitError
		if message == "" {
			code = exitUsage
		}
		if got := b.command(t, code, nil, strings.Fields(args)...); !strings.Contains(got, message) {
			t.Errorf("%s: %s", args, got)
		}
	}
	b.command(t, exitOK, nil, strings.Fields("limit remove "+of+"--unit tokens --window day --match model:openai/*")...)
	b.command(t, exitOK, nil, strings.Fields("limit remove "+of+"--unit usd --window minute")...)
	if b.command(t, exitOK, &list, "limit", "list"); len(list) != 1 {
		t.Errorf("%+v is left", list)
	}
}
