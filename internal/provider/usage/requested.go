package usage

import (
	"cmp"

	"modelgate"
)

// RequestedUnits is what the request said about quantities, for replies that name
// none, completed by what the provider makes where it says nothing. The zero
// value says nothing.
type RequestedUnits struct {
	// Characters are the Unicode code points of a speech request's input.
	Characters int64
	// Size and Quality of an image or video.
	Size, Quality string
	// Audio of a video: "true" with sound, "false" without, "" where the request
	// does not say it.
	Audio string
	// Seconds of one video, in millionths.
	Seconds int64
	// Count is how many images or videos; 0 only where the request is not read for them.
	Count int64
	// Search: the provider searches once, because the request has it do so.
	Search bool
}

// VideoUsage is what videos of the requested length use: all zero where the length is
// not known.
func (a RequestedUnits) VideoUsage() (u modelgate.Usage) {
	if a.Seconds == 0 {
		return u
	}
	u.Seconds, u.Size, u.Quality, u.Audio = a.Seconds, a.Size, a.Quality, a.Audio
	if count := max(a.Count, 1); a.Seconds <= modelgate.MaxQuantity/count {
		u.Seconds *= count
	}
	if a.Count > 1 {
		u.Videos = a.Count
	}
	return u
}

// ImageUsage completes the usage of images by the requested size and quality, and
// measures the pixels where the size tells them.
func (a RequestedUnits) ImageUsage(u *modelgate.Usage) {
	u.Size, u.Quality = cmp.Or(u.Size, a.Size), cmp.Or(u.Quality, a.Quality)
	if w, h, ok := Dimensions(u.Size); ok {
		u.Megapixels = w * h * min(u.Images, 1000)
	}
}

// Dimensions reads a size such as 1024x1536, each side at most 99999.
func Dimensions(size string) (w, h int64, ok bool) {
	sides := [2]int64{}
	at := 0
	for i := range len(size) {
		c := size[i]
		switch {
		case c >= '0' && c <= '9' && sides[at] < 10_000:
			sides[at] = sides[at]*10 + int64(c-'0')
		case (c == 'x' || c == '*') && at == 0 && i > 0:
			at = 1
		default:
			return 0, 0, false
		}
	}
	return sides[0], sides[1], sides[0] > 0 && sides[1] > 0
}
