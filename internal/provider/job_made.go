package provider

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider/usage"
)

// Made reads the reply to a creation: the id of the job, "" where there is
// none that can be followed, and what it will probably use: as the reply says,
// else the request.
func (w *JobProtocol) Made(status int, body []byte, asked usage.RequestedUnits, kind modelgate.ModelKind) (modelgate.TaskID, modelgate.Usage) {
	if !gjson.ValidBytes(body) {
		return "", modelgate.Usage{}
	}
	id := gjson.GetBytes(body, w.TaskID)
	if id.Type != gjson.String && id.Type != gjson.Number || !w.Followable(modelgate.TaskID(id.String())) {
		return "", modelgate.Usage{}
	}
	return modelgate.TaskID(id.String()), w.foreseen(status, body, asked, kind)
}

// foreseen is what a job of the kind will probably use.
func (w *JobProtocol) foreseen(status int, body []byte, asked usage.RequestedUnits, kind modelgate.ModelKind) modelgate.Usage {
	if kind == modelgate.Image {
		u := modelgate.Usage{Images: max(asked.Count, 1)}
		asked.Picture(&u)
		return u
	}
	u := asked.Film()
	if kind == modelgate.Audio {
		u.Characters = asked.Characters
	}
	said := w.Read(status, body)
	if length := max(said.Length, said.Usage.Seconds); length > 0 {
		u.Seconds = length
	}
	u.Size = cmp.Or(said.Usage.Size, asked.Size)
	u.Output = w.Tokens(asked, kind)
	return u
}

// What a film has that nobody has asked for otherwise, and how many pixels
// make a token.
const (
	frameRate     = 24 // pictures a second
	framePixels   = 1280 * 720
	pixelsOfToken = 1024
)

// Tokens is how many output tokens a job will probably be counted as: 0 where
// the provider counts none. Of a film it knows how long and how large it was
// asked to be.
func (w *JobProtocol) Tokens(asked usage.RequestedUnits, kind modelgate.ModelKind) int64 {
	if !w.Frames || kind != modelgate.Video {
		return 0
	}
	seconds, pixels := float64(asked.Seconds)/1e6, float64(framePixels)
	switch width, height, ok := usage.Dimensions(asked.Size); {
	case ok:
		pixels = float64(width) * float64(height)
	case strings.EqualFold(asked.Size, "480p"):
		pixels = 864 * 480
	case strings.EqualFold(asked.Size, "1080p"):
		pixels = 1920 * 1080
	}
	return int64(min(seconds*frameRate*pixels/pixelsOfToken, modelgate.MaxQuantity))
}
