package store

import (
	"maps"
	"slices"
	"strconv"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// The two JSON columns of a usage row are written by hand: every row has them,
// and reflection would cost more than all else that is done to the row here.

// pairsText encodes attribution, usageText what was used.
func pairsText(pairs map[string]string) (string, error) {
	b, err := appendPairs(nil, pairs)
	return string(b), err
}

func usageText(u *modelgate.Usage) (string, error) {
	b, err := appendUsage(nil, u)
	return string(b), err
}

// appendPairs appends a JSON object of texts, sorted by their names.
func appendPairs(b []byte, pairs map[string]string) ([]byte, error) {
	var room [24]string
	names := slices.AppendSeq(room[:0], maps.Keys(pairs))
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendText(b, sqldb.Clean(name)); err != nil {
			return nil, err
		}
		if b, err = appendText(append(b, ':'), sqldb.Clean(pairs[name])); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendText appends a JSON string.
func appendText(b []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			quoted, err := sqldb.JSON(s)
			return append(b, quoted...), err
		}
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

// appendUsage appends what encoding/json makes of a Usage with clean texts.
func appendUsage(b []byte, u *modelgate.Usage) ([]byte, error) {
	b = append(b, '{')
	for _, f := range [...]struct {
		name  string
		value int64
	}{
		{"input", u.Input}, {"cached_input", u.CachedInput}, {"cache_write", u.CacheWrite}, {"cache_write_1h", u.CacheWrite1h},
		{"output", u.Output}, {"reasoning", u.Reasoning}, {"audio_input", u.AudioInput}, {"audio_output", u.AudioOutput}, {"images", u.Images},
		{"seconds", u.Seconds}, {"characters", u.Characters}, {"searches", u.Searches}, {"megapixels", u.Megapixels},
		{"file_searches", u.FileSearches}, {"code_sessions", u.CodeSessions}, {"grounded_requests", u.GroundedRequests}, {"videos", u.Videos},
		{"advisor_input", u.AdvisorInput}, {"advisor_cached_input", u.AdvisorCachedInput}, {"advisor_cache_write", u.AdvisorCacheWrite},
		{"advisor_cache_write_1h", u.AdvisorCacheWrite1h}, {"advisor_output", u.AdvisorOutput},
	} {
		if f.value != 0 {
			b = strconv.AppendInt(appendName(b, f.name), f.value, 10)
		}
	}
	for _, f := range [...]struct{ name, value string }{
		{"size", u.Size}, {"quality", u.Quality}, {"service_tier", u.ServiceTier}, {"speed", u.Speed}, {"inference_geo", u.InferenceGeo},
		{"advisor_model", u.AdvisorModel},
	} {
		if f.value != "" {
			var err error
			if b, err = appendText(appendName(b, f.name), sqldb.Clean(f.value)); err != nil {
				return nil, err
			}
		}
	}
	return append(b, '}'), nil
}

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), name...), `":`...)
}
