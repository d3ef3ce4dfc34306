package provider

import (
	"github.com/tidwall/gjson"

	"modelgate"
)

// Made reads the reply to a creation: the id of the job, "" where there is
// none that can be followed, and what it will use as far as the request says,
// else the reply.
func (w *Way) Made(status int, body []byte, asked Asked, kind modelgate.ModelKind) (modelgate.TaskID, modelgate.Usage) {
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
func (w *Way) foreseen(status int, body []byte, asked Asked, kind modelgate.ModelKind) modelgate.Usage {
	var r reading
	if kind == modelgate.Image {
		r.usage.Images = max(asked.Count, 1)
		picture(&r, asked)
		return r.usage
	}
	filmed(&r, asked)
	if kind == modelgate.Audio {
		r.usage.Characters = asked.Characters
	}
	if said := w.Read(status, body); r.usage.Seconds == 0 {
		r.usage.Seconds, r.usage.Size = max(said.Length, said.Usage.Seconds), said.Usage.Size
		if asked.Size != "" {
			r.usage.Size = asked.Size
		}
	}
	return r.usage
}
