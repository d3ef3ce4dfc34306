package usage

import "github.com/tidwall/gjson"

// Readers of providers with a reply format of their own.
var (
	// Billed reads billed_units: tokens, search units, images embedded.
	Billed = &Reader{name: "billed units", members: quoted("usage", "billed_units"), whole: quoted("usage", "meta", "response"), read: billedUnits,
		ends: []string{"message-end", "stream-end"}}
	// NativeOutput reads usage with running totals beside an output object.
	NativeOutput = &Reader{name: "native output", members: quoted("usage"), whole: quoted("usage"), read: nativeOutput, finish: addImageSize, again: true}
	// EvalCounts reads prompt_eval_count and eval_count of the last line.
	EvalCounts = &Reader{name: "eval counts", members: nil, read: evalCounts}
	// Prediction reads the seconds a prediction ran.
	Prediction = &Reader{name: "prediction", members: quoted("metrics"), whole: quoted("metrics"), read: prediction, ends: []string{"done", "error"}, finish: estimateRuntime}
	// Any reads replies of a provider whose format nobody described: the
	// shape of the reply decides.
	Any = &Reader{name: "any", members: quoted("usage", "usageMetadata", "billed_units"), read: anyShape,
		whole: quoted("usage", "usage_info", "usageMetadata", "meta", "x_groq", "response", "output", "candidates"),
		ends:  []string{"message_stop", "response.completed", "response.incomplete", "response.failed"}, finish: addWithoutUsage,
		anyText: true, items: true}
)

func (r *reading) billed(units gjson.Result) {
	u := &r.usage
	for name, v := range members(units) {
		switch name {
		case "input_tokens":
			r.state(&u.Input, v)
		case "output_tokens":
			r.state(&u.Output, v)
		case "search_units":
			r.state(&u.Searches, v)
		case "images":
			r.state(&u.Images, v)
		}
	}
}

func billedUnits(r *reading, doc *document) {
	if text(doc.get("event_type")) == "stream-end" { // of version 1, in lines or events without a name
		r.ended = true
	}
	for _, path := range [...]string{"usage.billed_units", "meta.billed_units", "delta.usage.billed_units", "response.meta.billed_units"} {
		if units := doc.get(path); units.IsObject() {
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
	reason := output.Get("finish_reason")
	if !reason.Exists() {
		reason = output.Get("choices.0.finish_reason")
	}
	if stated(reason) {
		r.final, r.ended = true, true
	}
	word(&r.usage.Size, usage.Get("size"))
}

func evalCounts(r *reading, doc *document) {
	if done := doc.get("done"); done.Exists() && !done.Bool() {
		return
	}
	r.state(&r.usage.Input, doc.get("prompt_eval_count"))
	r.state(&r.usage.Output, doc.get("eval_count"))
	r.ended = true
}

func prediction(r *reading, doc *document) {
	metrics := doc.get("metrics")
	if !metrics.IsObject() {
		return
	}
	r.seconds(metrics.Get("predict_time"))
	r.state(&r.usage.Input, metrics.Get("input_token_count"))
	r.state(&r.usage.Output, metrics.Get("output_token_count"))
	r.state(&r.usage.Images, metrics.Get("image_count"))
}

// estimateRuntime takes the seconds that were asked for while nothing says how long
// the prediction ran.
func estimateRuntime(r *reading, requested RequestedUnits) {
	if !r.read {
		addRequestedVideo(r, requested)
		r.flawed = true
	}
}

func anyShape(r *reading, doc *document) {
	switch {
	case doc.get("usageMetadata").IsObject():
		gemini(r, doc)
	case doc.get("response.usage").IsObject(), text(doc.get("type")) == outputItem, text(doc.get("object")) == "response":
		responses(r, doc)
	case doc.get("message.usage").IsObject(),
		doc.get("usage.cache_read_input_tokens").Exists(),
		doc.get("usage.cache_creation_input_tokens").Exists(),
		text(doc.get("type")) == "message_delta":
		messages(r, doc)
	case doc.get("usage.billed_units").IsObject(),
		doc.get("meta.billed_units").IsObject(),
		doc.get("delta.usage.billed_units").IsObject():
		billedUnits(r, doc)
	case doc.get("eval_count").Exists():
		evalCounts(r, doc)
	default:
		chat(nil)(r, doc)
	}
}

// addWithoutUsage takes what the request alone decides where the reply says nothing.
func addWithoutUsage(r *reading, requested RequestedUnits) {
	if !r.read {
		addRequestedCharacters(r, requested)
	}
}
