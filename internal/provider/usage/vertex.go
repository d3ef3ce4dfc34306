package usage

import "strings"

// Readers of Google Cloud's prediction API.
var (
	// RawPredict reads rawPredict and streamRawPredict, which pass the model's own
	// body: Anthropic's, or that of a chat completion.
	RawPredict = &Reader{name: "raw predict", members: quoted("usage"), whole: append(chatFigures(), quoted("message")...), read: rawPredict,
		ends: []string{"message_stop", "error"}}
	// VertexPredictions counts the images of a predict call, or the tokens that
	// were embedded.
	VertexPredictions = &Reader{name: "predictions or embeddings", members: quoted("usageMetadata"), whole: quoted("predictions"), read: vertexPredictions,
		finish: addImageSize, begun: countStartedImages}
)

func rawPredict(r *reading, doc *document) {
	if doc.get("usage.prompt_tokens").Exists() {
		chat(nil)(r, doc)
		return
	}
	messages(r, doc)
}

func vertexPredictions(r *reading, doc *document) {
	var images int64
	for _, v := range members(doc.get("predictions")) {
		count := v.Get("embeddings.statistics.token_count")
		if !count.Exists() {
			images++
			continue
		}
		var n int64
		r.state(&n, count)
		r.usage.Input += n
	}
	if images > 0 {
		r.usage.Images, r.read = images, true
	}
}

// trafficTiers are the service tiers that Google Cloud has other words for.
var trafficTiers = map[string]string{"ON_DEMAND_PRIORITY": "priority", "ON_DEMAND_FLEX": "flex", "PROVISIONED_THROUGHPUT": "provisioned"}

// trafficTier is the service tier for a traffic type.
func trafficTier(kind string) string {
	if tier := trafficTiers[kind]; tier != "" {
		return tier
	}
	return strings.ToLower(kind)
}
