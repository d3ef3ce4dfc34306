package provider

import (
	"slices"
	"testing"
)

// TestRouteOrder: what more is known of goes first, and in any order of a table
// the paths of doors that are spelled out go before those with captures.
func TestRouteOrder(t *testing.T) {
	t.Parallel()
	of := func(r rank, pattern string) Route { return Route{Pattern: pattern, rank: r} }
	for _, tt := range []struct {
		name          string
		first, second Route
		same          bool // they stay as they are
	}{
		{name: "a door before the format", first: of(doorPath, "POST /z"), second: of(formatPath, "POST /a")},
		{name: "the format before the operator", first: of(formatPath, "POST /z"), second: of(operatorPath, "POST /a")},
		{name: "the operator before what is excepted", first: of(operatorPath, "POST /z"), second: of(exceptedPath, "POST /a")},
		{name: "what is excepted before any path", first: of(exceptedPath, "POST /z"), second: of(anyPath, "POST /**")},
		{name: "the operator before any path", first: of(operatorPath, "POST /z/{model}"), second: of(anyPath, "POST /**")},
		{name: "a letter before a capture", first: of(doorPath, "POST /v1/z"), second: of(doorPath, "POST /v1/{model}")},
		{name: "a tilde before a capture", first: of(doorPath, "POST /v1/~"), second: of(doorPath, "POST /v1/{model}")},
		{name: "a later capture", first: of(doorPath, "POST /{a}/b"), second: of(doorPath, "POST /{a}/{b}")},
		{name: "the shorter", first: of(doorPath, "POST /v1/a"), second: of(doorPath, "POST /v1/a/b")},
		{name: "by letters", first: of(doorPath, "POST /v1/a"), second: of(doorPath, "POST /v1/b")},
		{name: "one of the format after another", first: of(formatPath, "POST /b"), second: of(formatPath, "POST /a"), same: true},
		{name: "one of the operator after another", first: of(operatorPath, "POST /{x}"), second: of(operatorPath, "POST /a"), same: true},
	} {
		if order, back := compareRoutes(tt.first, tt.second), compareRoutes(tt.second, tt.first); tt.same && (order != 0 || back != 0) || !tt.same && (order != -1 || back != 1) {
			t.Errorf("%s: %d, and %d in the other order", tt.name, order, back)
		}
	}
}

// TestRouteOrderOfAFormat is the order of a whole table.
func TestRouteOrderOfAFormat(t *testing.T) {
	t.Parallel()
	routes := []Route{
		{Pattern: "GET /**", rank: anyPath}, {Pattern: "POST /models/{model}", rank: doorPath}, {Pattern: "POST /own", rank: operatorPath},
		{Pattern: "GET /files", rank: exceptedPath}, {Pattern: "POST /models/all", rank: doorPath}, {Pattern: "GET /models", rank: formatPath}, {Pattern: "GET /a", rank: formatPath},
	}
	slices.SortStableFunc(routes, compareRoutes)
	var got []string
	for _, r := range routes {
		got = append(got, r.Pattern)
	}
	want := []string{"POST /models/all", "POST /models/{model}", "GET /models", "GET /a", "POST /own", "GET /files", "GET /**"}
	if !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}
