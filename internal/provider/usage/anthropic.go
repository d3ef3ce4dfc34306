package usage

import (
	"github.com/tidwall/gjson"

	"modelgate"
)

// Messages reads the Messages API. Its figures are exclusive: the input
// leaves out both cache counts. In a stream they are running totals, begun by
// message_start; the last non-null value of each counts.
var Messages = &Reader{name: "messages", repeats: "content", members: quoted("usage"), read: messages,
	ends: []string{"message_stop", "error"}}

func messages(r *reading, doc *document) {
	usage := doc.get("usage")
	if !usage.IsObject() {
		usage = doc.get("message.usage")
	} else if reason := doc.get("delta.stop_reason"); reason.Type == gjson.String {
		r.final = true
	}
	if !usage.IsObject() {
		return
	}
	u := &r.usage
	for name, v := range members(usage) {
		switch name {
		case "input_tokens":
			r.state(&u.Input, v)
		case "output_tokens":
			r.state(&r.output, v)
		case "output_tokens_details":
			r.set(&r.thinking, v.Get("thinking_tokens"))
		case "iterations":
			r.iterations(v)
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
	}
	u.CacheWrite1h = min(r.written1h, r.written)
	u.CacheWrite = r.written - u.CacheWrite1h
	u.Reasoning = min(r.thinking, r.output)
	u.Output = r.output - u.Reasoning
}

// mostIterations is how many iterations of one call are looked at.
const mostIterations = 64

// iterations reads what a call did in parts: those that the figures of the call
// leave out are kept apart. What is neither known to be in them nor out of them
// is not added, and flaws the reading.
func (r *reading) iterations(list gjson.Result) {
	r.apart = new(modelgate.Usage)
	seen := 0
	for _, v := range members(list) {
		if seen++; seen > mostIterations {
			r.flawed = true
			return
		}
		switch text(v.Get("type")) {
		case "message":
		case "compaction":
			r.compaction(v)
		case "advisor_message":
			r.advice(v)
		default:
			r.flawed = true
		}
	}
}

// compaction adds an iteration that summed the conversation up.
func (r *reading) compaction(part gjson.Result) {
	n := r.iteration(part)
	a := r.apart
	a.Input += n.Input
	a.CachedInput += n.CachedInput
	a.CacheWrite += n.CacheWrite
	a.CacheWrite1h += n.CacheWrite1h
	a.Output += n.Output
}

// advice adds an iteration of another model. Only one such model can be told
// apart from the call's own.
func (r *reading) advice(part gjson.Result) {
	n := r.iteration(part)
	a := r.apart
	var model string
	if word(&model, part.Get("model")); model == "" || a.AdvisorModel != "" && a.AdvisorModel != model {
		r.flawed = true
		return
	}
	a.AdvisorModel = model
	a.AdvisorInput += n.Input
	a.AdvisorCachedInput += n.CachedInput
	a.AdvisorCacheWrite += n.CacheWrite
	a.AdvisorCacheWrite1h += n.CacheWrite1h
	a.AdvisorOutput += n.Output
}

// iteration is what one iteration used.
func (r *reading) iteration(part gjson.Result) (u modelgate.Usage) {
	var one reading
	for name, v := range members(part) {
		switch name {
		case "input_tokens":
			one.set(&u.Input, v)
		case "output_tokens":
			one.set(&u.Output, v)
		case "cache_read_input_tokens":
			one.set(&u.CachedInput, v)
		case "cache_creation_input_tokens":
			one.set(&one.written, v)
		case "cache_creation":
			one.cacheCreation(v)
		}
	}
	r.flawed = r.flawed || one.flawed
	u.CacheWrite1h = min(one.written1h, one.written)
	u.CacheWrite = one.written - u.CacheWrite1h
	return u
}

// add adds what is kept apart to the usage of the call.
func (r *reading) add(u *modelgate.Usage) {
	a := r.apart
	if a == nil {
		return
	}
	u.Input += a.Input
	u.CachedInput += a.CachedInput
	u.CacheWrite += a.CacheWrite
	u.CacheWrite1h += a.CacheWrite1h
	u.Output += a.Output
	u.AdvisorModel = a.AdvisorModel
	u.AdvisorInput, u.AdvisorCachedInput, u.AdvisorOutput = a.AdvisorInput, a.AdvisorCachedInput, a.AdvisorOutput
	u.AdvisorCacheWrite, u.AdvisorCacheWrite1h = a.AdvisorCacheWrite, a.AdvisorCacheWrite1h
}

// cacheCreation reads the split of the cache writes by their life. The parts
// win over a smaller sum.
func (r *reading) cacheCreation(v gjson.Result) {
	var short int64
	r.set(&short, v.Get("ephemeral_5m_input_tokens"))
	r.set(&r.written1h, v.Get("ephemeral_1h_input_tokens"))
	r.written = max(r.written, short+r.written1h)
}
