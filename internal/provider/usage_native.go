package provider

import "github.com/tidwall/gjson"

// Readers of providers with a reply format of their own.
var (
	// readBilled reads billed_units: tokens, search units, pictures embedded.
	readBilled = &Reader{name: "billed units", members: quoted("usage", "billed_units"), read: billedUnits,
		ends: []string{"message-end", "stream-end"}}
	// readNative reads usage with running totals beside an output object.
	readNative = &Reader{name: "native output", members: quoted("usage"), read: nativeOutput, finish: picture}
	// readEval reads prompt_eval_count and eval_count of the last line.
	readEval = &Reader{name: "eval counts", members: nil, read: evalCounts}
	// readPredict reads the seconds a prediction ran.
	readPredict = &Reader{name: "prediction", members: quoted("metrics"), read: prediction, ends: []string{"done", "error"}, finish: foreseen}
	// readAny reads replies of a provider whose format nobody described: the
	// shape of the reply decides.
	readAny = &Reader{name: "any", members: quoted("usage", "usageMetadata", "billed_units"), read: anyShape,
		ends: []string{"message_stop", "response.completed", "response.incomplete", "response.failed"}, finish: asAsked}
)

func (r *reading) billed(units gjson.Result) {
	u := &r.usage
	units.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			r.read = r.set(&u.Input, v) || r.read
		case "output_tokens":
			r.read = r.set(&u.Output, v) || r.read
		case "search_units":
			r.read = r.set(&u.Searches, v) || r.read
		case "images":
			r.read = r.set(&u.Images, v) || r.read
		}
		return true
	})
}

func billedUnits(r *reading, doc []byte) {
	if gjson.GetBytes(doc, "event_type").Str == "stream-end" { // of version 1, in lines or events without a name
		r.ended = true
	}
	for _, path := range []string{"usage.billed_units", "meta.billed_units", "delta.usage.billed_units", "response.meta.billed_units"} {
		if units := gjson.GetBytes(doc, path); units.IsObject() {
			r.billed(units)
			return
		}
	}
}

func nativeOutput(r *reading, doc []byte) {
	usage := gjson.GetBytes(doc, "usage")
	if !r.inclusive(usage, nil) {
		return
	}
	output := gjson.GetBytes(doc, "output")
	reason := output.Get("finish_reason")
	if !reason.Exists() {
		reason = output.Get("choices.0.finish_reason")
	}
	if reason.Type == gjson.String && reason.Str != "" && reason.Str != "null" {
		r.final, r.ended = true, true
	}
	word(&r.usage.Size, usage.Get("size"))
}

func evalCounts(r *reading, doc []byte) {
	if done := gjson.GetBytes(doc, "done"); done.Exists() && !done.Bool() {
		return
	}
	r.read = r.set(&r.usage.Input, gjson.GetBytes(doc, "prompt_eval_count")) || r.read
	r.read = r.set(&r.usage.Output, gjson.GetBytes(doc, "eval_count")) || r.read
	r.ended = true
}

func prediction(r *reading, doc []byte) {
	metrics := gjson.GetBytes(doc, "metrics")
	if !metrics.IsObject() {
		return
	}
	r.seconds(metrics.Get("predict_time"))
	r.read = r.set(&r.usage.Input, metrics.Get("input_token_count")) || r.read
	r.read = r.set(&r.usage.Output, metrics.Get("output_token_count")) || r.read
	r.read = r.set(&r.usage.Images, metrics.Get("image_count")) || r.read
}

// foreseen takes the seconds that were asked for while nothing says how long
// the prediction ran.
func foreseen(r *reading, asked Asked) {
	if !r.read {
		filmed(r, asked)
		r.flawed = true
	}
}

func anyShape(r *reading, doc []byte) {
	switch {
	case gjson.GetBytes(doc, "usageMetadata").IsObject():
		gemini(r, doc)
	case gjson.GetBytes(doc, "response.usage").IsObject():
		responses(r, doc)
	case gjson.GetBytes(doc, "message.usage").IsObject(),
		gjson.GetBytes(doc, "usage.cache_read_input_tokens").Exists(),
		gjson.GetBytes(doc, "usage.cache_creation_input_tokens").Exists(),
		gjson.GetBytes(doc, "type").Str == "message_delta":
		messages(r, doc)
	case gjson.GetBytes(doc, "usage.billed_units").IsObject(),
		gjson.GetBytes(doc, "meta.billed_units").IsObject(),
		gjson.GetBytes(doc, "delta.usage.billed_units").IsObject():
		billedUnits(r, doc)
	case gjson.GetBytes(doc, "eval_count").Exists():
		evalCounts(r, doc)
	default:
		chat(nil)(r, doc)
	}
}

// asAsked takes what the request alone decides where the reply says nothing.
func asAsked(r *reading, asked Asked) {
	if !r.read {
		spoken(r, asked)
	}
}
