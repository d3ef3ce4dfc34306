package gateway

import (
	"math"
	"slices"
	"sync"

	"modelgate"
	"modelgate/internal/provider/usage"
)

const (
	// enoughReplies is from how many complete replies on an organization's own
	// ratio counts.
	enoughReplies = 8
	// halfLife is after how many replies what was learned weighs half.
	halfLife = 64
	// The bounds of a ratio, in tokens a byte, and the one that is taken while
	// nothing is known.
	leastRatio, mostRatio, usualRatio = 1.0 / 16, 2.0, 1.0 / 4
	// mostShare is the part of a model's shared ratio that one organization may
	// make up.
	mostShare = 1.0 / 4
	// mostTexts bounds the memory.
	mostTexts = 10_000
	// hiddenReplies are remembered of replies that reason without showing it.
	hiddenReplies = 32
)

// textRatios learns from complete replies how many tokens a byte of text is, for
// the estimate of replies that are cut. A model's tokenizer and an organization's
// language decide that; no tokenizer is needed to know it. It is safe for
// concurrent use, and nil knows nothing. What was learned is lost with the process.
type textRatios struct {
	mu     sync.Mutex
	routes map[routeName]map[modelgate.ClientID]*textRatio
	count  int
}

// textRatio is what was learned of one organization's replies of a route.
type textRatio struct {
	tokens, bytes float64 // sums in which older replies weigh less
	replies       int
	hidden        [hiddenReplies]int64 // tokens of reasoning that was not shown
	hiddenCount   int
}

func (r *textRatio) ratio() float64 {
	if r.bytes <= 0 {
		return usualRatio
	}
	return min(max(r.tokens/r.bytes, leastRatio), mostRatio)
}

// learn notes a complete reply with so many bytes of delivered text.
func (t *textRatios) learn(org modelgate.ClientID, route routeName, bytes int64, u *modelgate.Usage) {
	if t == nil || bytes <= 0 || u.Output+u.Reasoning <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.routes[route][org]
	if r == nil {
		r = t.add(org, route)
	}
	// Whether the reasoning was shown, the text tells: it is as long as the tokens
	// that it has come of.
	shown, hidden := u.Output, u.Reasoning
	expected := math.Log(float64(bytes) * t.of(org, route))
	off := func(tokens int64) float64 { return math.Abs(math.Log(float64(max(tokens, 1))) - expected) }
	if hidden > 0 && off(shown+hidden) < off(shown) {
		shown, hidden = shown+hidden, 0
	}
	r.hidden[r.hiddenCount%hiddenReplies] = hidden
	r.hiddenCount++
	keep := math.Exp2(-1.0 / halfLife)
	r.tokens, r.bytes = r.tokens*keep+float64(shown), r.bytes*keep+float64(bytes)
	r.replies++
}

// add makes room for an organization's route. The lock is held.
func (t *textRatios) add(org modelgate.ClientID, route routeName) *textRatio {
	if t.count >= mostTexts { // any one goes: it is learned again
		for name, orgs := range t.routes {
			t.count -= len(orgs)
			delete(t.routes, name)
			break
		}
	}
	if t.routes[route] == nil {
		if t.routes == nil {
			t.routes = make(map[routeName]map[modelgate.ClientID]*textRatio)
		}
		t.routes[route] = make(map[modelgate.ClientID]*textRatio)
	}
	r := new(textRatio)
	t.routes[route][org] = r
	t.count++
	return r
}

// of is the ratio that is expected of a reply: the organization's own, else that
// of the model at all organizations, else the usual one. The lock is held.
func (t *textRatios) of(org modelgate.ClientID, route routeName) float64 {
	orgs := t.routes[route]
	if own := orgs[org]; own != nil && own.replies >= enoughReplies {
		return own.ratio()
	}
	known := 0
	for _, r := range orgs {
		if r.replies >= enoughReplies {
			known++
		}
	}
	if known == 0 {
		return usualRatio
	}
	share := min(mostShare, 1/float64(known))
	ratio := usualRatio * (1 - share*float64(known))
	for _, r := range orgs {
		if r.replies >= enoughReplies {
			ratio += share * r.ratio()
		}
	}
	return ratio
}

// estimate is how many tokens so many bytes of text probably are, and how many a
// reply has reasoned with before, without showing it.
func (t *textRatios) estimate(org modelgate.ClientID, route routeName, bytes int64) (shown, hidden int64) {
	if t == nil || bytes <= 0 {
		return usage.EstimateTokens(bytes), 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ratio := t.of(org, route)
	if ratio == usualRatio {
		shown = usage.EstimateTokens(bytes)
	} else {
		shown = int64(math.Ceil(float64(bytes) * ratio))
	}
	if own := t.routes[route][org]; own != nil && own.replies >= enoughReplies {
		last := slices.Clone(own.hidden[:min(own.hiddenCount, hiddenReplies)])
		slices.Sort(last)
		hidden = last[len(last)/2]
	}
	return shown, hidden
}
