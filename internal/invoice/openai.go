package invoice

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// openAIDays is how many days one page of OpenAI's costs has.
const openAIDays = "7"

// OpenAI reads the costs of an organization at OpenAI.
// https://platform.openai.com/docs/api-reference/usage/costs
func (s *Source) OpenAI(ctx context.Context, from, to time.Time) (lines []Line, err error) {
	query := url.Values{
		"start_time": {strconv.FormatInt(from.Unix(), 10)}, "end_time": {strconv.FormatInt(to.Unix(), 10)}, "bucket_width": {"1d"}, "limit": {openAIDays},
		"group_by[]": {"line_item", "project_id", "api_key_id"},
	}
	header := http.Header{"Authorization": {"Bearer " + s.Credential}}
	err = s.pages(ctx, "/v1/organization/costs", query, header, func(text json.RawMessage) error {
		var bucket struct {
			StartTime int64 `json:"start_time"`
			Results   []struct {
				Amount struct {
					Value    json.RawMessage `json:"value"`
					Currency string          `json:"currency"`
				} `json:"amount"`
				LineItem  string          `json:"line_item"`
				ProjectID string          `json:"project_id"`
				APIKeyID  string          `json:"api_key_id"`
				Quantity  json.RawMessage `json:"quantity"`
			} `json:"results"`
		}
		if err := json.Unmarshal(text, &bucket); err != nil {
			return err
		}
		for _, r := range bucket.Results {
			if !strings.EqualFold(r.Amount.Currency, "usd") {
				return fmt.Errorf("%s: %w", r.Amount.Currency, errCurrency)
			}
			l := openAILine(r.LineItem)
			l.Day, l.Project, l.Key = dayOf(time.Unix(bucket.StartTime, 0)), r.ProjectID, r.APIKeyID
			if l.Amount, l.Decimals, err = amount(string(r.Amount.Value), 0); err != nil {
				return err
			}
			if q := string(r.Quantity); q != "" && q != "null" {
				if l.Quantity, _, err = amount(q, 0); err != nil {
					return err
				}
			}
			lines = append(lines, l)
		}
		return nil
	})
	return lines, err
}

// openAITools are lines that name no model.
var openAITools = []struct {
	words string
	unit  modelgate.Unit
}{
	{"web search", modelgate.UnitSearch}, {"file search", modelgate.UnitFileSearch}, {"code interpreter", modelgate.UnitCodeSession},
}

// openAILine reads a line item, such as
// "priority | gpt-5.6-sol, cached input, long context".
func openAILine(item string) Line {
	l := Line{Name: item}
	text := strings.ToLower(item)
	switch {
	case strings.Contains(text, "storage"):
		l.Class = Storage
		return l
	case strings.Contains(text, "credit"), strings.Contains(text, "discount"):
		l.Class = Credit
		return l
	}
	for _, tool := range openAITools {
		if strings.HasPrefix(text, tool.words) {
			l.Class, l.Unit = Usage, tool.unit.String()
			return l
		}
	}
	var words []string
	if tier, rest, ok := strings.Cut(item, " | "); ok {
		words, item = append(words, strings.ToLower(strings.TrimSpace(tier))), rest
	}
	parts := strings.Split(item, ", ")
	model, medium, _ := strings.Cut(parts[0], " ")
	for _, part := range parts[1:] {
		switch part = strings.ReplaceAll(strings.ToLower(part), "_", " "); part {
		case "long context":
			words = append(words, Long)
		case "flex", "priority", "batch":
			words = append(words, part)
		default:
			if l.Unit != "" {
				return Line{Name: l.Name}
			}
			l.Unit = unitNamed(strings.ToLower(medium), part)
		}
	}
	if model == "" || l.Unit == "" {
		return Line{Name: l.Name}
	}
	l.Class, l.Model, l.Variant = Usage, model, variantOf(words...)
	return l
}

// unitNamed is the unit that words of a bill mean, "" where that is unknown.
func unitNamed(medium, words string) string {
	kind := ""
	for _, word := range strings.Fields(words) {
		switch word {
		case "tokens", "text":
		case "audio", "image":
			medium = word
		case "input", "output", "cached":
			if kind != "" && kind+word != "cachedinput" && kind+word != "inputcached" {
				return ""
			}
			if kind += word; kind == "inputcached" {
				kind = "cachedinput"
			}
		case "cache":
			kind = "cachewrite"
		case "write", "writes", "read":
			if kind != "cachewrite" {
				return ""
			}
			if word == "read" {
				kind = "cachedinput"
			}
		default:
			return ""
		}
	}
	return map[string]string{
		"input": "input", "output": "output", "cachedinput": "cached_input", "cachewrite": "cache_write", "cached": "cached_input",
		"audio input": "audio_input", "audio output": "audio_output", "audio cachedinput": "cached_audio_input",
		"image input": "image_input", "image output": "image_output", "image cachedinput": "cached_image_input",
	}[strings.TrimPrefix(strings.TrimSpace(medium+" "+kind), "text ")]
}
