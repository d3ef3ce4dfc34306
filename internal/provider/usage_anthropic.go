package provider

import "github.com/tidwall/gjson"

// readMessages reads the Messages API. Its figures are exclusive: the input
// leaves out both cache counts. In a stream they are running totals, begun by
// message_start; the last non-null value of each counts.
var readMessages = &Reader{name: "messages", members: quoted("usage"), read: messages,
	ends: []string{"message_stop", "error"}}

func messages(r *reading, doc []byte) {
	usage := gjson.GetBytes(doc, "usage")
	if !usage.IsObject() {
		usage = gjson.GetBytes(doc, "message.usage")
	} else if reason := gjson.GetBytes(doc, "delta.stop_reason"); reason.Type == gjson.String {
		r.final = true
	}
	if !usage.IsObject() {
		return
	}
	u := &r.usage
	usage.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			r.read = r.set(&u.Input, v) || r.read
		case "output_tokens":
			r.read = r.set(&u.Output, v) || r.read
		case "cache_read_input_tokens":
			r.set(&u.CachedInput, v)
		case "cache_creation_input_tokens":
			r.set(&r.written, v)
		case "cache_creation":
			r.cacheCreation(v)
		case "server_tool_use":
			r.set(&u.Searches, v.Get("web_search_requests"))
		case "service_tier":
			word(&u.ServiceTier, v)
		case "speed":
			word(&u.Speed, v)
		case "inference_geo":
			word(&u.InferenceGeo, v)
		}
		return true
	})
	u.CacheWrite1h = min(r.written1h, r.written)
	u.CacheWrite = r.written - u.CacheWrite1h
}

// cacheCreation reads the split of the cache writes by their life. The parts
// win over a smaller sum.
func (r *reading) cacheCreation(v gjson.Result) {
	var short int64
	r.set(&short, v.Get("ephemeral_5m_input_tokens"))
	r.set(&r.written1h, v.Get("ephemeral_1h_input_tokens"))
	r.written = max(r.written, short+r.written1h)
}
