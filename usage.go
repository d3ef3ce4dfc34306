package modelgate

import (
	"maps"
	"time"
)

// ParseStatus says how completely a call's usage is known.
type ParseStatus string

// The values; the last four belong to async jobs.
const (
	ParseOK          ParseStatus = "ok"
	ParsePartial     ParseStatus = "partial"
	ParseUnknown     ParseStatus = "unknown"
	ParseProvisional ParseStatus = "provisional"
	ParseFailed      ParseStatus = "failed"
	ParseCancelled   ParseStatus = "cancelled"
	ParseExpired     ParseStatus = "expired"
)

// AllParseStatuses are all there are.
func AllParseStatuses() []ParseStatus {
	return []ParseStatus{ParseOK, ParsePartial, ParseUnknown, ParseProvisional, ParseFailed, ParseCancelled, ParseExpired}
}

// MaxQuantity is the largest plausible count of anything in one call. A larger
// or negative count is clamped, and the row becomes partial.
const MaxQuantity = 1_000_000_000_000

// Usage is what one call consumed. Token fields never overlap: Input counts
// uncached text only, whatever the provider's own sum includes.
type Usage struct {
	Input        int64 `json:"input,omitempty"`
	CachedInput  int64 `json:"cached_input,omitempty"`
	CacheWrite   int64 `json:"cache_write,omitempty"`
	CacheWrite1h int64 `json:"cache_write_1h,omitempty"`
	Output       int64 `json:"output,omitempty"` // without reasoning
	Reasoning    int64 `json:"reasoning,omitempty"`
	AudioInput   int64 `json:"audio_input,omitempty"`
	AudioOutput  int64 `json:"audio_output,omitempty"`
	ImageInput   int64 `json:"image_input,omitempty"`
	ImageOutput  int64 `json:"image_output,omitempty"`
	VideoInput   int64 `json:"video_input,omitempty"`
	// Tokens of sound and pictures read from a prompt cache, which CachedInput
	// leaves out.
	CachedAudioInput int64 `json:"cached_audio_input,omitempty"`
	CachedImageInput int64 `json:"cached_image_input,omitempty"`

	Images     int64 `json:"images,omitempty"`
	Seconds    int64 `json:"seconds,omitempty"` // millionths
	Characters int64 `json:"characters,omitempty"`
	Searches   int64 `json:"searches,omitempty"`
	Megapixels int64 `json:"megapixels,omitempty"` // millionths
	Pages      int64 `json:"pages,omitempty"`

	// Use of the provider's own tools. A grounded request is one that used
	// searches; some models charge for these instead of searches, see
	// pricing.Cost.
	FileSearches     int64 `json:"file_searches,omitempty"`
	CodeSessions     int64 `json:"code_sessions,omitempty"`
	GroundedRequests int64 `json:"grounded_requests,omitempty"`

	// Videos is the number of films whose total length is Seconds; 0 means one.
	// It has no price.
	Videos int64 `json:"videos,omitempty"`

	// Usage of another model, AdvisorModel, that the provider ran within the
	// call. It is charged at that model's own price.
	AdvisorInput        int64 `json:"advisor_input,omitempty"`
	AdvisorCachedInput  int64 `json:"advisor_cached_input,omitempty"`
	AdvisorCacheWrite   int64 `json:"advisor_cache_write,omitempty"`
	AdvisorCacheWrite1h int64 `json:"advisor_cache_write_1h,omitempty"`
	AdvisorOutput       int64 `json:"advisor_output,omitempty"`

	// Size, Quality and Audio choose the price of a picture or film. Audio is
	// "true" for one with sound and "false" for one without.
	Size    string `json:"size,omitempty"`
	Quality string `json:"quality,omitempty"`
	Audio   string `json:"audio,omitempty"`
	// ServiceTier, Speed and InferenceGeo are as stated in the reply.
	ServiceTier  string `json:"service_tier,omitempty"`
	Speed        string `json:"speed,omitempty"`
	InferenceGeo string `json:"inference_geo,omitempty"`
	AdvisorModel string `json:"advisor_model,omitempty"` // the provider's own id
}

// PromptTokens are all input tokens of the called model, cached ones included.
func (u *Usage) PromptTokens() int64 { return u.tokens(InputTokens) }

// CompletionTokens are all output tokens of the called model.
func (u *Usage) CompletionTokens() int64 { return u.tokens(OutputTokens) }

// tokens are those of a kind of the called model.
func (u *Usage) tokens(kind UnitKind) (sum int64) {
	for i, n := range u.Counters() {
		if Unit(i) < UnitCount && n != nil && units[i].kind == kind {
			sum += *n
		}
	}
	return sum
}

// InputTokens are all input tokens, those of an advisor included.
func (u *Usage) InputTokens() int64 {
	return u.PromptTokens() + u.AdvisorInput + u.AdvisorCachedInput + u.AdvisorCacheWrite + u.AdvisorCacheWrite1h
}

// OutputTokens are all output tokens, those of an advisor included.
func (u *Usage) OutputTokens() int64 { return u.CompletionTokens() + u.AdvisorOutput }

// TotalTokens are all tokens of the call.
func (u *Usage) TotalTokens() int64 { return u.InputTokens() + u.OutputTokens() }

// TokenKinds are the tokens of calls by kind; their sum is all of TotalTokens.
type TokenKinds struct {
	Input       int64 `json:"input"`        // text, pictures and films, without what was read from or written to a cache
	CachedInput int64 `json:"cached_input"` // of every medium
	CacheWrite  int64 `json:"cache_write"`  // for whatever time
	Output      int64 `json:"output"`       // reasoning and pictures too
	AudioInput  int64 `json:"audio_input"`
	AudioOutput int64 `json:"audio_output"`
}

// TokenKinds counts the tokens by kind, those of an advisor included.
func (u *Usage) TokenKinds() TokenKinds {
	return TokenKinds{
		Input:       u.Input + u.ImageInput + u.VideoInput + u.AdvisorInput,
		CachedInput: u.CachedInput + u.CachedAudioInput + u.CachedImageInput + u.AdvisorCachedInput,
		CacheWrite:  u.CacheWrite + u.CacheWrite1h + u.AdvisorCacheWrite + u.AdvisorCacheWrite1h,
		Output:      u.Output + u.Reasoning + u.ImageOutput + u.AdvisorOutput,
		AudioInput:  u.AudioInput,
		AudioOutput: u.AudioOutput,
	}
}

// Advisor is the usage of the advisor as that of a separate call; false where
// there was none.
func (u *Usage) Advisor() (Usage, bool) {
	return Usage{
		Input: u.AdvisorInput, CachedInput: u.AdvisorCachedInput, CacheWrite: u.AdvisorCacheWrite, CacheWrite1h: u.AdvisorCacheWrite1h,
		Output: u.AdvisorOutput, ServiceTier: u.ServiceTier, Speed: u.Speed, InferenceGeo: u.InferenceGeo,
	}, u.AdvisorModel != ""
}

// Says is what the reply says of a field that prices depend on; "" for nothing
// and for any other field.
func (u *Usage) Says(field string) string {
	switch field {
	case "service_tier":
		return u.ServiceTier
	case "speed":
		return u.Speed
	case "inference_geo":
		return u.InferenceGeo
	}
	return ""
}

// Clamp forces every count into 0..MaxQuantity and reports whether all were
// there already.
func (u *Usage) Clamp() bool {
	fine := true
	for _, v := range u.Counters() {
		if v != nil && (*v < 0 || *v > MaxQuantity) {
			*v = min(max(*v, 0), MaxQuantity)
			fine = false
		}
	}
	return fine
}

// Counts reports whether there is any count.
func (u *Usage) Counts() bool {
	for _, v := range u.Counters() {
		if v != nil && *v != 0 {
			return true
		}
	}
	return false
}

// Or is u with the counts and words of other where it has none.
func (u Usage) Or(other Usage) Usage {
	mine, others := u.Counters(), other.Counters()
	for i := range mine {
		if mine[i] != nil && *mine[i] == 0 {
			*mine[i] = *others[i]
		}
	}
	words, otherWords := u.Words(), other.Words()
	for i := range words {
		if *words[i] == "" {
			*words[i] = *otherWords[i]
		}
	}
	return u
}

// CallBegin is the part of a call that is known before its first byte goes to a
// provider. The spool keeps it until the call's end is booked.
type CallBegin struct {
	ID           UUID
	At           time.Time // admission: the instant in ID
	ClientID     ClientID
	KeyID        KeyID
	SubAccountID SubAccountID
	Provider     string // route provider; see CallEnd.Provider for fallbacks
	Model        string // the provider's own id
	Slug         string // "" where the route is not catalogued
	Author       string
	Kind         ModelKind // "" where unknown
	Region       string
	Door         string // path template of the surface, such as /v1/messages
	ViaSDK       bool
	Attribution  map[string]string // the caller's own pairs; see Row
	Holds        Holds             // the plain budgets that its cost is reserved on
	Rules        []int64           // the numbers of the rules that it is reserved on
	Sent         SentEstimate      // what it costs at least, once it is sent
	// WalletMarkup is the markup at which the sub-account's wallet pays for the
	// call; nil where no wallet does.
	WalletMarkup *Markup
}

// SentEstimate is the cost of a request by its length. The zero value means that
// the call costs nothing or that its length does not determine the cost.
type SentEstimate struct {
	Input      int64 // tokens
	Cost       Nano
	PriceLabel string // the rates the cost was computed with
}

// CallEnd is the outcome of a call.
type CallEnd struct {
	StatusCode  int // as answered to the client
	ParseStatus ParseStatus
	Usage       Usage
	Cost        Nano
	// StatedCost is what the provider's reply says that the call costs; nil where
	// it says nothing or is not asked.
	StatedCost  *Nano
	PriceLabel  string // the rates the cost was computed with, or StatedLabel
	LatencyMS   int64  // admission to the last byte
	FirstByteMS int64  // admission to the provider's first byte; 0 when none came
	// Provider, Model and Region replace those of the begin when a fallback
	// route answered; all are empty otherwise.
	Provider, Model, Region string
	// Job is the asynchronous job that the call made; nil for none.
	Job *NewJob
}

// StatedLabel is the price label of a row whose cost is the provider's own word.
const StatedLabel = "stated"

// UsageRow is one booked call.
type UsageRow struct {
	CallBegin
	CallEnd
}

// The attribution pairs that the gateway itself adds: the first two to every
// row, the others to calls with a browser token. Callers cannot set them, but for
// the end user, whom a key names as it likes.
const (
	AttributionKeyID        = "key_id"
	AttributionSubAccountID = "sub_account_id"
	AttributionTokenID      = "token_id"
	AttributionEndUser      = "end_user"
)

// SetByGateway reports whether no caller may set an attribution key.
func SetByGateway(key string) bool {
	return key == AttributionKeyID || key == AttributionSubAccountID || key == AttributionTokenID
}

// MaxAttributionValue is how many bytes the value of an attribution pair has at
// most.
const MaxAttributionValue = 256

// Row joins the two halves of a call. Its attribution is the caller's pairs
// and the gateway's own, b.Attribution itself where it has these already.
func Row(b CallBegin, e CallEnd) UsageRow {
	if e.Provider != "" {
		b.Provider, b.Model, b.Region = e.Provider, e.Model, e.Region
	}
	key, there := b.Attribution[AttributionKeyID]
	if !there || key != string(b.KeyID) || b.Attribution[AttributionSubAccountID] != string(b.SubAccountID) {
		pairs := make(map[string]string, len(b.Attribution)+2)
		maps.Copy(pairs, b.Attribution)
		b.Attribute(pairs)
		b.Attribution = pairs
	}
	return UsageRow{b, e}
}

// Attribute adds the gateway's own pairs of the call to an attribution.
func (b *CallBegin) Attribute(pairs map[string]string) {
	pairs[AttributionKeyID] = string(b.KeyID)
	if b.SubAccountID != "" {
		pairs[AttributionSubAccountID] = string(b.SubAccountID)
	}
}

// InterruptedEnd is the end of a call that the process did not live to see:
// status 502, no complete answer was delivered. Seen is the last usage that
// was marked, nil when none was: then the request counts as sent.
func InterruptedEnd(b *CallBegin, seen *CallEnd) CallEnd {
	if seen == nil {
		if b.Sent == (SentEstimate{}) {
			return CallEnd{StatusCode: 502, ParseStatus: ParseUnknown}
		}
		seen = &CallEnd{Usage: Usage{Input: b.Sent.Input}, Cost: b.Sent.Cost, PriceLabel: b.Sent.PriceLabel}
	}
	end := *seen
	end.StatusCode, end.ParseStatus = 502, ParsePartial
	return end
}

// GroupBy is what statistics are summed by: a built-in dimension or an
// attribution key (GET /gw/stats).
type GroupBy string

// The built-in dimensions. Their names are reserved: an attribution key that
// is spelled like one is kept with its rows and cannot be grouped on.
const (
	ByProvider  GroupBy = "provider"
	ByModel     GroupBy = "model"
	ByModelSlug GroupBy = "model_slug"
	ByAuthor    GroupBy = "author"
	ByDay       GroupBy = "day"
	ByRegion    GroupBy = "region"
)

// BuiltIn reports whether the rows themselves have the dimension; all others
// are attribution keys.
func (g GroupBy) BuiltIn() bool {
	switch g {
	case ByProvider, ByModel, ByModelSlug, ByAuthor, ByDay, ByRegion:
		return true
	}
	return false
}

// The buckets of rows that have no key in a dimension. A row without the
// attribution key is in the bucket "".
const (
	BucketOther   = "other"   // of model_slug and author: the route is not catalogued
	BucketUnknown = "unknown" // of region
)

// StatsBucket is what the calls of one key come to.
type StatsBucket struct {
	Key         string
	Requests    int64
	TotalTokens int64
	Cost        Nano
}

// MaxAttributionKey is the length of the longest attribution key.
const MaxAttributionKey = 64

// IsAttributionKey reports whether a text can be the key of an attribution
// pair: 1..MaxAttributionKey of A-Z a-z 0-9 _ . and -.
func IsAttributionKey(k string) bool {
	return spelled(k, MaxAttributionKey, alphanumerics+"_.-")
}
