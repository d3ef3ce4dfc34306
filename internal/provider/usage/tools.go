package usage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/tidwall/gjson"
)

// tools is how often tools that the provider runs did something.
type tools struct{ searches, fileSearches int64 }

// mostIDs is how many ids are told apart in one call. Beyond it the count is
// no longer known to be right.
const mostIDs = 1000

// distinct notes an id, and how many different ones there are.
func (r *reading) distinct(id string, count *int64) {
	digest := sha256.Sum256([]byte(id))
	sum := binary.BigEndian.Uint64(digest[:])
	switch {
	case slices.Contains(r.ids, sum):
	case len(r.ids) == mostIDs:
		r.flawed = true
	default:
		r.ids = append(r.ids[:len(r.ids):len(r.ids)], sum)
		*count = int64(len(r.ids))
	}
}

// outputItem is the event that ends an item of a response.
const outputItem = "response.output_item.done"

// isToolItem reports whether an event ends an item of a tool that the provider
// runs, by its bytes alone.
func isToolItem(name, data []byte) bool {
	if len(name) > 0 && string(name) != outputItem || len(name) == 0 && !bytes.Contains(data, []byte(outputItem)) {
		return false
	}
	return bytes.Contains(data, []byte(`search_call"`)) || bytes.Contains(data, []byte(`code_interpreter_call"`))
}

// item counts an item of a response.
func (r *reading) item(item gjson.Result, t *tools) {
	switch text(item.Get("type")) {
	case "web_search_call":
		if kind := item.Get("action.type"); !kind.Exists() || text(kind) == "search" {
			t.searches++
		}
	case "file_search_call":
		t.fileSearches++
	case "code_interpreter_call":
		if id := item.Get("container_id"); id.Type == gjson.String {
			r.distinct(text(id), &r.usage.CodeSessions)
		} else {
			r.usage.CodeSessions = max(r.usage.CodeSessions, 1)
		}
	default:
		return
	}
	r.read = true
}

// items counts what the tools of a response did: as its items came, or from
// its list of them, which may hold more.
func (r *reading) items(doc *document) {
	if text(doc.get("type")) == outputItem {
		r.item(doc.get("item"), &r.passed)
	}
	list := doc.get("response.output")
	if !list.IsArray() {
		list = doc.get("output")
	}
	var listed tools
	for _, v := range members(list) {
		r.item(v, &listed)
	}
	u := &r.usage
	u.Searches = max(u.Searches, r.passed.searches, listed.searches)
	u.FileSearches = max(u.FileSearches, r.passed.fileSearches, listed.fileSearches)
}

// grounding counts what a candidate was answered from: different searches, and
// that there were any.
func (r *reading) grounding(candidate gjson.Result) {
	found := candidate.Get("groundingMetadata")
	for _, v := range members(found.Get("webSearchQueries")) {
		if v.Str != "" {
			r.distinct(text(v), &r.usage.Searches)
			r.usage.GroundedRequests = 1
		}
	}
	for range members(found.Get("groundingChunks")) {
		r.usage.GroundedRequests = 1
	}
}

// addRequestedSearch counts the search that a request has every answer begin with.
func addRequestedSearch(r *reading, requested RequestedUnits) {
	if requested.Search && r.read {
		r.usage.Searches = max(r.usage.Searches, 1)
	}
}
