package provider

// readMessages reads the Messages API. Its figures are exclusive: the input
// leaves out both cache counts. In a stream they are running totals, begun by
// message_start; the last non-null value of each counts.
var readMessages = &Reader{name: "messages", members: quoted("usage"), read: messages,
	ends: []string{"message_stop", "error"}}

func messages(r *reading, doc *document) {
	usage := doc.get("usage")
	if !usage.isObject() {
		usage = doc.get("message", "usage")
	} else if reason := doc.get("delta", "stop_reason"); reason.kind() == JSONString {
		r.final = true
	}
	if !usage.isObject() {
		return
	}
	u := &r.usage
	for e := usage.entries(); e.next(); {
		v := e.value
		switch string(e.name) {
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
			r.set(&u.Searches, v.get("web_search_requests"))
		case "service_tier":
			word(&u.ServiceTier, v)
		case "speed":
			word(&u.Speed, v)
		case "inference_geo":
			word(&u.InferenceGeo, v)
		}
	}
	u.CacheWrite1h = min(r.written1h, r.written)
	u.CacheWrite = r.written - u.CacheWrite1h
}

// cacheCreation reads the split of the cache writes by their life. The parts
// win over a smaller sum.
func (r *reading) cacheCreation(v datum) {
	var short int64
	r.set(&short, v.get("ephemeral_5m_input_tokens"))
	r.set(&r.written1h, v.get("ephemeral_1h_input_tokens"))
	r.written = max(r.written, short+r.written1h)
}
