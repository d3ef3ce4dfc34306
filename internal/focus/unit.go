package focus

import (
	"strconv"

	"modelgate"
)

// meter is how a unit is named in a file.
type meter struct {
	words    string // in ChargeDescription
	name     string // SkuMeter
	consumed string // ConsumedUnit
	decimals int    // of ConsumedQuantity: quanta are so many powers of ten smaller
}

// meters are those of all units.
var meters = [modelgate.UnitCount]meter{
	modelgate.UnitInput:            {"input tokens", "Input Tokens", "Tokens", 0},
	modelgate.UnitCachedInput:      {"cached input tokens", "Cache Read Input Tokens", "Tokens", 0},
	modelgate.UnitCacheWrite:       {"input tokens cached for 5 minutes", "Cache Write Input Tokens", "Tokens", 0},
	modelgate.UnitCacheWrite1h:     {"input tokens cached for 1 hour", "Cache Write 1h Input Tokens", "Tokens", 0},
	modelgate.UnitOutput:           {"output tokens", "Output Tokens", "Tokens", 0},
	modelgate.UnitReasoning:        {"reasoning tokens", "Reasoning Output Tokens", "Tokens", 0},
	modelgate.UnitAudioInput:       {"audio input tokens", "Audio Input Tokens", "Tokens", 0},
	modelgate.UnitAudioOutput:      {"audio output tokens", "Audio Output Tokens", "Tokens", 0},
	modelgate.UnitImageInput:       {"image input tokens", "Image Input Tokens", "Tokens", 0},
	modelgate.UnitImageOutput:      {"image output tokens", "Image Output Tokens", "Tokens", 0},
	modelgate.UnitCachedAudioInput: {"cached audio input tokens", "Cache Read Audio Input Tokens", "Tokens", 0},
	modelgate.UnitCachedImageInput: {"cached image input tokens", "Cache Read Image Input Tokens", "Tokens", 0},
	modelgate.UnitVideoInput:       {"video input tokens", "Video Input Tokens", "Tokens", 0},
	modelgate.UnitImage:            {"images", "Images", "Images", 6},
	modelgate.UnitMegapixel:        {"pixels", "Pixels", "Pixels", 0},
	modelgate.UnitSecond:           {"seconds", "Seconds", "Seconds", 6},
	modelgate.UnitMinute:           {"seconds", "Seconds", "Seconds", 6},
	modelgate.UnitCharacters:       {"characters", "Characters", "Characters", 0},
	modelgate.UnitPage:             {"pages", "Pages", "Pages", 6},
	modelgate.UnitSearch:           {"searches", "Searches", "Searches", 0},
	modelgate.UnitFileSearch:       {"file searches", "File Searches", "Searches", 0},
	modelgate.UnitCodeSession:      {"code sessions", "Code Sessions", "Sessions", 6},
	modelgate.UnitGroundedRequest:  {"grounded requests", "Grounded Requests", "Requests", 0},
	modelgate.UnitRequest:          {"requests", "Requests", "Requests", 6},
}

// priced is how many powers of ten a quantum is smaller than what a price is
// for: PricingQuantity has so many decimals.
func priced(u modelgate.Unit) int {
	if u.Per() == 1_000 {
		return 3
	}
	return 6
}

// pricingUnit is what a price is for, in words.
func pricingUnit(u modelgate.Unit) string {
	of := meters[u].consumed
	switch {
	case u == modelgate.UnitMegapixel:
		return "1000000 " + of
	case u.Per() == 1:
		return of
	}
	return strconv.FormatInt(u.Per(), 10) + " " + of
}
