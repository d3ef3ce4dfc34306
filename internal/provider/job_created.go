package provider

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider/usage"
)

// ReadCreated reads the reply to a creation: the id of the job, "" where there is
// none that can be followed, and what it will probably use: as the reply says,
// else the request.
func (j *JobProtocol) ReadCreated(status int, body []byte, requested usage.RequestedUnits, kind modelgate.ModelKind) (modelgate.TaskID, modelgate.Usage) {
	if !gjson.ValidBytes(body) {
		return "", modelgate.Usage{}
	}
	id := gjson.GetBytes(body, j.TaskID)
	if id.Type != gjson.String && id.Type != gjson.Number || !j.Followable(modelgate.TaskID(id.String())) {
		return "", modelgate.Usage{}
	}
	return modelgate.TaskID(id.String()), j.estimate(status, body, requested, kind)
}

// estimate is what a job of the kind will probably use.
func (j *JobProtocol) estimate(status int, body []byte, requested usage.RequestedUnits, kind modelgate.ModelKind) modelgate.Usage {
	if kind == modelgate.Image {
		u := modelgate.Usage{Images: max(requested.Count, 1)}
		requested.ImageUsage(&u)
		return u
	}
	u := requested.VideoUsage()
	if kind == modelgate.Audio {
		u.Characters = requested.Characters
	}
	said := j.Read(status, body)
	if length := max(said.Length, said.Usage.Seconds); length > 0 {
		u.Seconds = length
	}
	u.Size = cmp.Or(said.Usage.Size, requested.Size)
	u.Output = j.Tokens(requested, kind)
	return u
}

// What a video has that nobody has asked for otherwise, and how many pixels
// make a token.
const (
	frameRate     = 24 // images a second
	framePixels   = 1280 * 720
	pixelsOfToken = 1024
)

// Tokens is how many output tokens a job will probably be counted as: 0 where
// the provider counts none. Of a video it knows how long and how large it was
// asked to be.
func (j *JobProtocol) Tokens(requested usage.RequestedUnits, kind modelgate.ModelKind) int64 {
	if !j.Frames || kind != modelgate.Video {
		return 0
	}
	seconds, pixels := float64(requested.Seconds)/1e6, float64(framePixels)
	switch width, height, ok := usage.Dimensions(requested.Size); {
	case ok:
		pixels = float64(width) * float64(height)
	case strings.EqualFold(requested.Size, "480p"):
		pixels = 864 * 480
	case strings.EqualFold(requested.Size, "1080p"):
		pixels = 1920 * 1080
	}
	return int64(min(seconds*frameRate*pixels/pixelsOfToken, modelgate.MaxQuantity))
}
