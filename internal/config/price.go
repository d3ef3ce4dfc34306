package config

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"modelgate"
)

// rates are prices by unit, in USD.
type rates struct {
	// USD per million input tokens, those from a prompt cache not included.
	Input *modelgate.Nano `yaml:"input"`

	// USD per million input tokens read from a prompt cache. Default: as
	// input.
	CachedInput *modelgate.Nano `yaml:"cached_input"`

	// USD per million input tokens written to a prompt cache, for five
	// minutes where the provider makes a difference. Default: as input.
	CacheWrite *modelgate.Nano `yaml:"cache_write"`

	// USD per million input tokens written to a prompt cache for an hour.
	// Default: as cache_write.
	CacheWrite1h *modelgate.Nano `yaml:"cache_write_1h"`

	// USD per million output tokens.
	Output *modelgate.Nano `yaml:"output"`

	// USD per million output tokens that a model reasons with and does not show.
	// Default: as output.
	Reasoning *modelgate.Nano `yaml:"reasoning"`

	// USD per million audio tokens in. Default: as input.
	AudioInput *modelgate.Nano `yaml:"audio_input"`

	// USD per million audio tokens out. Default: as output.
	AudioOutput *modelgate.Nano `yaml:"audio_output"`

	// USD per million image tokens in. Default: as input.
	ImageInput *modelgate.Nano `yaml:"image_input"`

	// USD per million image tokens out. Default: as output.
	ImageOutput *modelgate.Nano `yaml:"image_output"`

	// USD per million audio tokens read from a prompt cache. Default: as
	// cached_input.
	CachedAudioInput *modelgate.Nano `yaml:"cached_audio_input"`

	// USD per million image tokens read from a prompt cache. Default: as
	// cached_input.
	CachedImageInput *modelgate.Nano `yaml:"cached_image_input"`

	// USD per million video tokens in. Default: as input.
	VideoInput *modelgate.Nano `yaml:"video_input"`

	// USD per picture made. In a price or a dated one, also a list by size and
	// quality: the first entry that matches applies, and where none does the
	// dearest.
	Image media `yaml:"image"`

	// USD per second of video or sound. In a price or a dated one, also a list
	// by size and audio, as for image.
	Second media `yaml:"second"`

	// USD per minute of video or sound, in place of second. Half a minute costs
	// exactly half.
	Minute *modelgate.Nano `yaml:"minute"`

	// USD per million characters (Unicode code points) of text.
	Characters *modelgate.Nano `yaml:"characters"`

	// USD per page that was read.
	Page *modelgate.Nano `yaml:"page"`

	// USD per thousand searches, or search units of a reranker.
	Search *modelgate.Nano `yaml:"search"`

	// USD per thousand searches in files stored at the provider.
	FileSearch *modelgate.Nano `yaml:"file_search"`

	// USD per container in which the provider runs code.
	CodeSession *modelgate.Nano `yaml:"code_session"`

	// USD per thousand calls that were answered from searches, where search
	// has no price.
	GroundedRequest *modelgate.Nano `yaml:"grounded_request"`

	// USD per million pixels made.
	Megapixel *modelgate.Nano `yaml:"megapixel"`

	// USD per call, on top of the other units.
	Request *modelgate.Nano `yaml:"request"`
}

// terms are a price at one time.
type terms struct {
	rates `yaml:",inline"`

	// Prices for long prompts. An entry applies to the whole call when its
	// prompt, cached tokens included, has more than `above` tokens; the highest
	// such entry counts, and units it does not name keep their price.
	Tiers []tier `yaml:"tiers"`

	// Prices at certain times of the day, UTC. Units an entry does not name
	// keep their price. The instant a call was admitted decides.
	Windows []window `yaml:"windows"`

	// Prices by what the answer says the call was, for what no factor can
	// state. Of the entries that match, the one with the most fields counts, then
	// the one with the highest `above`. Units it does not name keep their
	// price, and multipliers on its fields do not apply. Where a tier holds for
	// which there is no entry with these fields, the dearer of tier and entry
	// counts for each unit.
	Variants []variant `yaml:"variants"`

	// Factors on the cost, by what the answer says the call was. Several that
	// match are multiplied. They do not touch search, file_search, code_session,
	// grounded_request and request.
	Multipliers multipliers `yaml:"multipliers"`
}

// price is what a model costs.
type price struct {
	terms `yaml:",inline"`

	// Prices from a day on, for announced changes. Of the entries that have
	// begun and not ended the newest counts, and units it does not name keep
	// the price outside of `dated`. `null` takes the price of a unit away.
	// tiers, windows, variants, multipliers and the lists of image and second
	// each replace the former list as a whole. The instant a call was admitted
	// decides.
	Dated []dated `yaml:"dated"`

	// Where the price is from. It has no say in what anything costs.
	Origin origin `yaml:"origin"`
}

// origin says where a price is from.
type origin struct {
	// The price lists that state it, such as "models.dev 2026-11-20".
	Lists []string `yaml:"lists"`

	// The day on which it was last compared with them or with the provider's
	// page.
	Checked time.Time `yaml:"checked"`

	// Who approved it; for prices that no two lists agree on.
	ApprovedBy string `yaml:"approved_by"`

	// When it was approved.
	ApprovedAt time.Time `yaml:"approved_at"`

	// Anything worth knowing, such as what the price leaves out.
	Note string `yaml:"note"`
}

// variant is a price for calls of which the answer says something.
type variant struct {
	// The service tier that the answer states, such as priority.
	ServiceTier string `yaml:"service_tier"`

	// The speed, such as fast.
	Speed string `yaml:"speed"`

	// Where the model ran, such as us.
	InferenceGeo string `yaml:"inference_geo"`

	// Tokens of the prompt above which the entry applies. Default 0: any
	// prompt.
	Above int64 `yaml:"above"`
	rates `yaml:",inline"`
}

// tier is a price for long prompts.
type tier struct {
	// Tokens of the prompt above which the entry applies, at least 1.
	// Required.
	Above int64 `yaml:"above"`
	rates `yaml:",inline"`
}

// dated is a price from a day on.
type dated struct {
	// When the entry begins: a date, at midnight UTC, or a time such as
	// 2026-12-01T08:00:00Z. Required.
	From time.Time `yaml:"from"`

	// When it ends; from then on the former price holds again. Default: never.
	Until time.Time `yaml:"until"`
	terms `yaml:",inline"`
}

// window is a price at a time of the day.
type window struct {
	// Beginning of the window, UTC, such as "01:00"; included. Required.
	From clock `yaml:"from"`

	// End of the window, UTC, up to "24:00"; not included. Before `from`, it
	// is on the next day. Required.
	To clock `yaml:"to"`

	// Days on which the window begins: mon, tue, wed, thu, fri, sat, sun.
	// Default: all.
	Days  []day `yaml:"days"`
	rates `yaml:",inline"`
}

// day is a day of the week.
type day string

// days are the days of the week from Sunday on, as time.Weekday counts them.
func days() []day { return []day{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} }

// multipliers are factors by a field of the answer and its value, from 0 to 1000,
// with at most six decimals. 0 is for calls that are paid otherwise, such as those
// of throughput by the hour.
type multipliers struct {
	// By the service tier, such as `{flex: 0.5, priority: 2}`.
	ServiceTier map[string]modelgate.Nano `yaml:"service_tier"`

	// By the speed, such as `{fast: 2}`.
	Speed map[string]modelgate.Nano `yaml:"speed"`

	// By where the model ran, such as `{us: 1.1}`.
	InferenceGeo map[string]modelgate.Nano `yaml:"inference_geo"`
}

// media is a price per picture or second, or a table of them.
type media struct {
	each  *modelgate.Nano
	table []mediaLine
}

// mediaLine is one line of the table.
type mediaLine struct {
	// Size as requested or answered, such as 1024x1024. Empty matches any.
	Size string `yaml:"size"`

	// Quality as requested or answered, such as high. Empty matches any.
	Quality string `yaml:"quality"`

	// Whether a film has sound, as requested. Left out, it matches any.
	Audio *bool `yaml:"audio"`

	// USD per picture or second. Required.
	USD *modelgate.Nano `yaml:"usd"`
}

func (m *media) decodeNode(d *document, path string, n ast.Node) {
	if _, list := n.(*ast.SequenceNode); list {
		d.value(path, n, &m.table)
		d.faultIf(len(m.table) == 0, path, "is an empty list; give one number or a price by size and quality")
		return
	}
	d.value(path, n, &m.each)
}

// ToolPrices are prices of what a provider's own tools do, in USD; nil is none.
type ToolPrices struct {
	// USD per thousand searches of the web.
	Search *modelgate.Nano `yaml:"search"`

	// USD per thousand searches in files stored at the provider.
	FileSearch *modelgate.Nano `yaml:"file_search"`

	// USD per container in which the provider runs code.
	CodeSession *modelgate.Nano `yaml:"code_session"`

	// USD per thousand calls that were answered from searches, where search
	// has no price.
	GroundedRequest *modelgate.Nano `yaml:"grounded_request"`
}
