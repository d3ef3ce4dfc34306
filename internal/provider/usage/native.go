package usage

// Readers of providers with a reply format of their own.
var (
	// Billed reads billed_units: tokens, search units, pictures embedded.
	Billed = &Reader{name: "billed units", members: quoted("usage", "billed_units"), read: billedUnits,
		ends: []string{"message-end", "stream-end"}}
	// NativeOutput reads usage with running totals beside an output object.
	NativeOutput = &Reader{name: "native output", members: quoted("usage"), read: nativeOutput, finish: shown, again: true}
	// EvalCounts reads prompt_eval_count and eval_count of the last line.
	EvalCounts = &Reader{name: "eval counts", members: nil, read: evalCounts}
	// Prediction reads the seconds a prediction ran.
	Prediction = &Reader{name: "prediction", members: quoted("metrics"), read: prediction, ends: []string{"done", "error"}, finish: foreseen}
	// Any reads replies of a provider whose format nobody described: the
	// shape of the reply decides.
	Any = &Reader{name: "any", members: quoted("usage", "usageMetadata", "billed_units"), read: anyShape,
		ends: []string{"message_stop", "response.completed", "response.incomplete", "response.failed"}, finish: asAsked,
		anyText: true, items: true, deep: true}
)

func (r *reading) billed(units datum) {
	u := &r.usage
	for e := units.entries(); e.next(); {
		v := e.value
		switch string(e.name) {
		case "input_tokens":
			r.read = r.set(&u.Input, v) || r.read
		case "output_tokens":
			r.read = r.set(&u.Output, v) || r.read
		case "search_units":
			r.read = r.set(&u.Searches, v) || r.read
		case "images":
			r.read = r.set(&u.Images, v) || r.read
		}
	}
}

func billedUnits(r *reading, doc *document) {
	if doc.get("event_type").says("stream-end") { // of version 1, in lines or events without a name
		r.ended = true
	}
	for _, path := range [...][]string{{"usage"}, {"meta"}, {"delta", "usage"}, {"response", "meta"}} {
		if units := doc.get(append(path, "billed_units")...); units.isObject() {
			r.billed(units)
			return
		}
	}
}

func nativeOutput(r *reading, doc *document) {
	usage := doc.get("usage")
	if !r.inclusive(usage, nil) {
		return
	}
	output := doc.get("output")
	reason := output.get("finish_reason")
	if !reason.exists() {
		reason = output.get("choices", "0", "finish_reason")
	}
	if reason.stated() {
		r.final, r.ended = true, true
	}
	word(&r.usage.Size, usage.get("size"))
}

func evalCounts(r *reading, doc *document) {
	if done := doc.get("done"); done.exists() && !done.result().Bool() {
		return
	}
	r.read = r.set(&r.usage.Input, doc.get("prompt_eval_count")) || r.read
	r.read = r.set(&r.usage.Output, doc.get("eval_count")) || r.read
	r.ended = true
}

func prediction(r *reading, doc *document) {
	metrics := doc.get("metrics")
	if !metrics.isObject() {
		return
	}
	r.seconds(metrics.get("predict_time"))
	r.read = r.set(&r.usage.Input, metrics.get("input_token_count")) || r.read
	r.read = r.set(&r.usage.Output, metrics.get("output_token_count")) || r.read
	r.read = r.set(&r.usage.Images, metrics.get("image_count")) || r.read
}

// foreseen takes the seconds that were asked for while nothing says how long
// the prediction ran.
func foreseen(r *reading, asked RequestedUnits) {
	if !r.read {
		filmed(r, asked)
		r.flawed = true
	}
}

func anyShape(r *reading, doc *document) {
	switch {
	case doc.get("usageMetadata").isObject():
		gemini(r, doc)
	case doc.get("response", "usage").isObject(), doc.get("type").says(outputItem), doc.get("object").says("response"):
		responses(r, doc)
	case doc.get("message", "usage").isObject(),
		doc.get("usage", "cache_read_input_tokens").exists(),
		doc.get("usage", "cache_creation_input_tokens").exists(),
		doc.get("type").says("message_delta"):
		messages(r, doc)
	case doc.get("usage", "billed_units").isObject(),
		doc.get("meta", "billed_units").isObject(),
		doc.get("delta", "usage", "billed_units").isObject():
		billedUnits(r, doc)
	case doc.get("eval_count").exists():
		evalCounts(r, doc)
	default:
		chat(nil)(r, doc)
	}
}

// asAsked takes what the request alone decides where the reply says nothing.
func asAsked(r *reading, asked RequestedUnits) {
	if !r.read {
		spoken(r, asked)
	}
}
