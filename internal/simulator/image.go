package simulator

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"
)

// The prices, in tokens, of pictures.
const (
	imageTokens   = 100
	partialTokens = 100
	maxImages     = 10
	maxPartials   = 3
)

// picture is a PNG of one colour, the first three bytes of the name in
// hexadecimal.
func picture(name string) []byte {
	raw, _ := hex.DecodeString(name)
	raw = append(raw, 0, 0, 0)
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range img.Rect.Dx() * img.Rect.Dy() {
		img.SetRGBA(i%8, i/8, color.RGBA{raw[0], raw[1], raw[2], 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil
	}
	return b.Bytes()
}

// images serves generations and edits. Models whose name begins with dall-e
// have no usage, may answer with addresses and cannot stream; the others
// refuse response_format, as GPT image models do.
func (c *call) images() answer {
	dallE := strings.HasPrefix(c.served.Model, "dall-e")
	if !dallE && c.fields["response_format"] != nil {
		return c.invalid("Unknown parameter: 'response_format'.")
	}
	n := c.fields.count("n", maxImages)
	c.served.Images = n
	if dallE {
		return c.dallE(n)
	}
	if c.fields.flag("stream") {
		return c.imageStream()
	}
	usage := c.imageUsage(int64(n) * imageTokens)
	var data []object
	for range n {
		data = append(data, object{"b64_json": c.imageBase64()})
	}
	reply := c.imageProperties(object{"created": c.now().Unix(), "data": data})
	return c.reply(reply, "usage", usage)
}

func (c *call) imageBase64() string {
	return base64.StdEncoding.EncodeToString(picture(c.id("")[:6]))
}

func (c *call) dallE(n int) answer {
	var data []object
	for range n {
		one := object{"revised_prompt": strings.TrimSpace(withoutDirectives(c.fields.text("prompt")))}
		if c.fields.text("response_format") == "b64_json" {
			one["b64_json"] = c.imageBase64()
		} else {
			one["url"] = c.fileURL(c.id("")[:6] + ".png")
		}
		data = append(data, one)
	}
	return jsonAnswer(object{"created": c.now().Unix(), "data": data})
}

// imageProperties echoes what the picture was asked to be.
func (c *call) imageProperties(reply object) object {
	for name, otherwise := range map[string]string{"background": "opaque", "output_format": "png", "quality": "medium", "size": "1024x1024"} {
		reply[name] = otherwise
		if v := c.fields.text(name); v != "" && v != "auto" {
			reply[name] = v
		}
	}
	return reply
}

func (c *call) imageUsage(output int64) object {
	text, sent := c.prompt.words(), int64(len(c.files))*imageTokens
	t := c.bill(tokens{input: text + sent, output: output})
	return object{
		"input_tokens": t.input, "output_tokens": t.output, "total_tokens": t.total(),
		"input_tokens_details":  object{"text_tokens": t.input - min(sent, t.input), "image_tokens": min(sent, t.input)},
		"output_tokens_details": object{"text_tokens": 0, "image_tokens": t.output},
	}
}

// imageStream is one picture in a stream, after as many partial ones as were
// asked for.
func (c *call) imageStream() answer {
	partials := int(min(max(c.fields.number("partial_images"), 0), maxPartials))
	c.served.Images = 1
	usage := c.imageUsage(imageTokens + int64(partials)*partialTokens)
	prefix := "image_generation"
	if strings.HasSuffix(c.r.URL.Path, "/edits") {
		prefix = "image_edit"
	}
	s := c.stream()
	s.fault = eventFrame("error", c.fault(http.StatusInternalServerError, toldToFail))
	event := func(name string, o object) {
		o["b64_json"], o["created_at"] = c.imageBase64(), c.now().Unix()
		s.event(prefix+name, c.imageProperties(o))
	}
	for i := range partials {
		event(".partial_image", object{"partial_image_index": i})
	}
	last := object{}
	s.stateUsage(c.addUsage(last, "usage", usage))
	event(".completed", last)
	return s.answer
}

// fileURL is the address under which this simulator serves a result.
func (c *call) fileURL(name string) string {
	return "http://" + c.r.Host + "/files/" + name
}

// file serves the results that replies refer to: pictures by their colour, and
// one video for every name.
func (c *call) file() answer {
	name, isPicture := strings.CutSuffix(c.arg, ".png")
	if isPicture {
		return answer{kind: "image/png", body: picture(name)}
	}
	if strings.HasSuffix(c.arg, ".mp4") {
		return answer{kind: "video/mp4", body: film()}
	}
	return c.fail(http.StatusNotFound, "no such file")
}
