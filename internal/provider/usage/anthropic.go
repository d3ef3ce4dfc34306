package usage

import (
	"github.com/tidwall/gjson"

	"modelgate"
)

// Messages reads the Messages API. Its figures are exclusive: the input
// leaves out both cache counts. In a stream they are running totals, begun by
// message_start; the last non-null value of each counts.
var Messages = &Reader{name: "messages", repeats: "content", members: quoted("usage"), whole: quoted("usage"), read: messages,
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
	r.messageUsage(usage)
	if list := usage.Get("iterations"); list.Exists() {
		r.iterations(list)
	}
}

// messageUsage reads a usage object, of a call or of an iteration.
func (r *reading) messageUsage(usage gjson.Result) {
	u := &r.usage
	for name, v := range members(usage) {
		switch name {
		case "input_tokens":
			r.state(&u.Input, v)
		case "output_tokens":
			r.state(&r.output, v)
		case "output_tokens_details":
			r.set(&r.thinking, v.Get("thinking_tokens"))
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
		default:
			r.stateCost(name, v)
		}
	}
	r.splitWritten()
	u.Reasoning = min(r.thinking, r.output)
	u.Output = r.output - u.Reasoning
}

// mostIterations is how many iterations of one call are looked at.
const mostIterations = 64

// apart is what iterations of a call used that its own figures leave out.
type apart struct {
	own     modelgate.Usage // of the call's model
	advisor modelgate.Usage // of another
	model   string          // that other; "" for none
}

// iterations reads what a call did in parts: those that the figures of the call
// leave out are kept apart. What is neither known to be in them nor out of them
// is not added, and flaws the reading.
func (r *reading) iterations(list gjson.Result) {
	r.apart = new(apart)
	seen := 0
	for _, v := range members(list) {
		if seen++; seen > mostIterations {
			r.flawed = true
			return
		}
		switch text(v.Get("type")) {
		case "message":
		case "compaction": // it summed the conversation up
			r.iteration(&r.apart.own, v)
		case "advisor_message":
			r.advice(v)
		default:
			r.flawed = true
		}
	}
}

// advice adds an iteration of another model. Only one such model can be told
// apart from the call's own.
func (r *reading) advice(part gjson.Result) {
	var model string
	if word(&model, part.Get("model")); model == "" || r.apart.model != "" && r.apart.model != model {
		r.flawed = true
		return
	}
	r.apart.model = model
	r.iteration(&r.apart.advisor, part)
}

// iteration adds what one iteration used.
func (r *reading) iteration(to *modelgate.Usage, part gjson.Result) {
	var one reading
	one.messageUsage(part)
	r.flawed = r.flawed || one.flawed
	one.usage.Output = one.output
	plus(to, &one.usage)
}

// plus adds the tokens of a model to others.
func plus(to, u *modelgate.Usage) {
	to.Input += u.Input
	to.CachedInput += u.CachedInput
	to.CacheWrite += u.CacheWrite
	to.CacheWrite1h += u.CacheWrite1h
	to.Output += u.Output
}

// add adds what is kept apart to the usage of the call.
func (r *reading) add(u *modelgate.Usage) {
	if r.apart == nil {
		return
	}
	plus(u, &r.apart.own)
	a := &r.apart.advisor
	u.AdvisorModel = r.apart.model
	u.AdvisorInput, u.AdvisorCachedInput, u.AdvisorOutput = a.Input, a.CachedInput, a.Output
	u.AdvisorCacheWrite, u.AdvisorCacheWrite1h = a.CacheWrite, a.CacheWrite1h
}

// cacheCreation reads the split of the cache writes by their life. The parts
// win over a smaller sum.
func (r *reading) cacheCreation(v gjson.Result) {
	var short int64
	r.set(&short, v.Get("ephemeral_5m_input_tokens"))
	r.set(&r.written1h, v.Get("ephemeral_1h_input_tokens"))
	r.written = max(r.written, short+r.written1h)
}
