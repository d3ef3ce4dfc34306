package modelgate

// Unit is something that is counted and priced. Quantities are integers:
// whole tokens, characters and searches, and millionths of pictures, requests,
// seconds, sessions, pages and megapixels, so that half a second is still exact.
type Unit uint8

// The units. A new one goes to the end: the spool has written their numbers down.
const (
	UnitInput            Unit = iota // uncached input tokens of text
	UnitCachedInput                  // input tokens read from a prompt cache
	UnitCacheWrite                   // input tokens written to it for five minutes
	UnitCacheWrite1h                 // input tokens written to it for an hour
	UnitOutput                       // output tokens of text, without reasoning
	UnitReasoning                    // output tokens that are not shown
	UnitAudioInput                   // audio tokens in
	UnitAudioOutput                  // audio tokens out
	UnitImageInput                   // image tokens in
	UnitImageOutput                  // image tokens out
	UnitCachedAudioInput             // audio tokens read from a prompt cache
	UnitCachedImageInput             // image tokens read from a prompt cache
	UnitVideoInput                   // video tokens in
	UnitImage                        // pictures made
	UnitMegapixel                    // pixels made
	UnitSecond                       // seconds of video or sound
	UnitMinute                       // minutes of it: another price of UnitSecond's quantity
	UnitCharacters                   // Unicode code points of text
	UnitPage                         // pages read
	UnitSearch                       // searches, or search units of a reranker
	UnitFileSearch                   // searches in files that the provider keeps
	UnitCodeSession                  // containers in which the provider runs code
	UnitGroundedRequest              // calls that were answered from searches
	UnitRequest                      // calls
	UnitCount
)

// UnitKind says what a unit measures.
type UnitKind uint8

// The kinds. Tokens and media are two measures of the same thing; tools and
// calls come on top.
const (
	InputTokens UnitKind = iota
	OutputTokens
	Media
	ProviderTool // what a tool of the provider's does
	WholeCall
)

// noUnit is the fallback of units that have none.
const noUnit = UnitCount

// units is all there is to know of each unit. What a usage holds of it is in
// Usage.Counters.
var units = [UnitCount]struct {
	name string // in the configuration, in labels and in the API
	kind UnitKind
	per  int64 // how much of it a quoted price is for
	// fallback is the unit whose price holds where this one has none.
	fallback Unit
	counter  string // its name among the quantities of a row; "" where it has none of its own
	whole    bool   // Usage counts whole ones, of which a price is for millionths
}{
	UnitInput:            {"input", InputTokens, 1_000_000, noUnit, "input", false},
	UnitCachedInput:      {"cached_input", InputTokens, 1_000_000, UnitInput, "cached_input", false},
	UnitCacheWrite:       {"cache_write", InputTokens, 1_000_000, UnitInput, "cache_write", false},
	UnitCacheWrite1h:     {"cache_write_1h", InputTokens, 1_000_000, UnitCacheWrite, "cache_write_1h", false},
	UnitOutput:           {"output", OutputTokens, 1_000_000, noUnit, "output", false},
	UnitReasoning:        {"reasoning", OutputTokens, 1_000_000, UnitOutput, "reasoning", false},
	UnitAudioInput:       {"audio_input", InputTokens, 1_000_000, UnitInput, "audio_input", false},
	UnitAudioOutput:      {"audio_output", OutputTokens, 1_000_000, UnitOutput, "audio_output", false},
	UnitImageInput:       {"image_input", InputTokens, 1_000_000, UnitInput, "image_input", false},
	UnitImageOutput:      {"image_output", OutputTokens, 1_000_000, UnitOutput, "image_output", false},
	UnitCachedAudioInput: {"cached_audio_input", InputTokens, 1_000_000, UnitCachedInput, "cached_audio_input", false},
	UnitCachedImageInput: {"cached_image_input", InputTokens, 1_000_000, UnitCachedInput, "cached_image_input", false},
	UnitVideoInput:       {"video_input", InputTokens, 1_000_000, UnitInput, "video_input", false},
	UnitImage:            {"image", Media, 1, noUnit, "images", true},
	UnitMegapixel:        {"megapixel", Media, 1, noUnit, "megapixels", false},
	UnitSecond:           {"second", Media, 1, UnitMinute, "seconds", false},
	UnitMinute:           {"minute", Media, 1, noUnit, "", false},
	UnitCharacters:       {"characters", Media, 1_000_000, noUnit, "characters", false},
	UnitPage:             {"page", Media, 1, noUnit, "pages", true},
	UnitSearch:           {"search", ProviderTool, 1_000, noUnit, "searches", false},
	UnitFileSearch:       {"file_search", ProviderTool, 1_000, noUnit, "file_searches", false},
	UnitCodeSession:      {"code_session", ProviderTool, 1, noUnit, "code_sessions", true},
	UnitGroundedRequest:  {"grounded_request", ProviderTool, 1_000, noUnit, "grounded_requests", false},
	UnitRequest:          {"request", WholeCall, 1, noUnit, "", false},
}

// String is the name in the configuration.
func (u Unit) String() string { return units[u].name }

// Kind is what the unit measures.
func (u Unit) Kind() UnitKind { return units[u].kind }

// Per is how much of the unit a price is quoted for: a million tokens,
// characters, a thousand searches or grounded requests, else 1.
func (u Unit) Per() int64 { return units[u].per }

// Fallback is the unit whose price holds where u has none; false where such a
// quantity has no price.
func (u Unit) Fallback() (Unit, bool) { return units[u].fallback, units[u].fallback != noUnit }

// Scaled reports whether multipliers and the factor of a provider change the
// price of the unit.
func (u Unit) Scaled() bool { return units[u].kind < ProviderTool }

// quoted is how many quoted prices make the price of a million quanta: what is
// quoted by the piece is counted in millionths.
func (u Unit) quoted() int64 {
	if units[u].per == 1_000 {
		return 1_000
	}
	return 1
}

// UnitByName finds a unit by its name in the configuration.
func UnitByName(name string) (Unit, bool) {
	for u := range UnitCount {
		if units[u].name == name {
			return u, true
		}
	}
	return 0, false
}

// The counters: first one for each unit, nil for those without a quantity of
// their own, then those that have no price, where a new one goes to the end too.
const (
	counterVideos = int(UnitCount) + iota
	counterAdvisorInput
	counterAdvisorCachedInput
	counterAdvisorCacheWrite
	counterAdvisorCacheWrite1h
	counterAdvisorOutput
	CounterCount
)

// Counters are the counts of u, in the order of the constants.
func (u *Usage) Counters() [CounterCount]*int64 {
	return [...]*int64{
		UnitInput:            &u.Input,
		UnitCachedInput:      &u.CachedInput,
		UnitCacheWrite:       &u.CacheWrite,
		UnitCacheWrite1h:     &u.CacheWrite1h,
		UnitOutput:           &u.Output,
		UnitReasoning:        &u.Reasoning,
		UnitAudioInput:       &u.AudioInput,
		UnitAudioOutput:      &u.AudioOutput,
		UnitImageInput:       &u.ImageInput,
		UnitImageOutput:      &u.ImageOutput,
		UnitCachedAudioInput: &u.CachedAudioInput,
		UnitCachedImageInput: &u.CachedImageInput,
		UnitVideoInput:       &u.VideoInput,
		UnitImage:            &u.Images,
		UnitMegapixel:        &u.Megapixels,
		UnitSecond:           &u.Seconds,
		UnitCharacters:       &u.Characters,
		UnitPage:             &u.Pages,
		UnitSearch:           &u.Searches,
		UnitFileSearch:       &u.FileSearches,
		UnitCodeSession:      &u.CodeSessions,
		UnitGroundedRequest:  &u.GroundedRequests,

		counterVideos:              &u.Videos,
		counterAdvisorInput:        &u.AdvisorInput,
		counterAdvisorCachedInput:  &u.AdvisorCachedInput,
		counterAdvisorCacheWrite:   &u.AdvisorCacheWrite,
		counterAdvisorCacheWrite1h: &u.AdvisorCacheWrite1h,
		counterAdvisorOutput:       &u.AdvisorOutput,
	}
}

// CounterName is the name of the i-th of Counters in JSON.
func CounterName(i int) string {
	if i < int(UnitCount) {
		return units[i].counter
	}
	return [...]string{"videos", "advisor_input", "advisor_cached_input", "advisor_cache_write", "advisor_cache_write_1h", "advisor_output"}[i-int(UnitCount)]
}

// WordCount is how many words a usage has.
const WordCount = 7

// Words are the words of u, in an order that is the same on disk.
func (u *Usage) Words() [WordCount]*string {
	return [...]*string{&u.Size, &u.Quality, &u.Audio, &u.ServiceTier, &u.Speed, &u.InferenceGeo, &u.AdvisorModel}
}

// WordName is the name of the i-th of Words in JSON.
func WordName(i int) string {
	return [...]string{"size", "quality", "audio", "service_tier", "speed", "inference_geo", "advisor_model"}[i]
}

// Quantities are how much of each unit was used, in the quanta that prices are
// for.
func (u *Usage) Quantities() (all [UnitCount]int64) {
	counters := u.Counters()
	for unit, n := range counters[:UnitCount] {
		switch {
		case n == nil || *n == 0: // nearly all are
		case units[unit].whole:
			all[unit] = *n * 1_000_000
		default:
			all[unit] = *n
		}
	}
	all[UnitRequest] = 1_000_000
	return all
}
