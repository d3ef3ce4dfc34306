package simulator

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	secondsPerWord = 0.4
	sampleRate     = 24000
	// mp3FrameSeconds is how long one frame of MPEG 2 layer III lasts at
	// 24 kHz: 576 samples; mp3FrameBytes is its length at 32 kbit/s.
	mp3FrameSeconds = 576.0 / sampleRate
	mp3FrameBytes   = 72 * 32000 / sampleRate
	maxSpoken       = 4096 // code points OpenAI takes
)

// silence is seconds of it, in one of three formats, and its media type.
func silence(format string, seconds float64) (sound []byte, kind string, err error) {
	samples := int(seconds * sampleRate)
	switch format {
	case "", "mp3":
		frame := make([]byte, mp3FrameBytes)
		copy(frame, []byte{0xff, 0xf3, 0x44, 0xc4}) // MPEG 2, layer III, 32 kbit/s, 24 kHz, mono
		for range max(int(seconds/mp3FrameSeconds), 1) {
			sound = append(sound, frame...)
		}
		return sound, "audio/mpeg", nil
	case "wav":
		return append(wavHeader(samples*2), make([]byte, samples*2)...), "audio/wav", nil
	case "pcm":
		return make([]byte, samples*2), "audio/pcm", nil
	}
	return nil, "", fmt.Errorf("the simulator speaks mp3, wav and pcm, not %q", format)
}

// wavHeader is the header of 16-bit mono PCM.
func wavHeader(size int) []byte {
	le := binary.LittleEndian
	h := append([]byte("RIFF"), le.AppendUint32(nil, uint32(36+size))...)
	h = append(h, "WAVEfmt "...)
	h = le.AppendUint32(h, 16)
	h = le.AppendUint16(h, 1)
	h = le.AppendUint16(h, 1)
	h = le.AppendUint32(h, sampleRate)
	h = le.AppendUint32(h, sampleRate*2)
	h = le.AppendUint16(h, 2)
	h = le.AppendUint16(h, 16)
	h = append(h, "data"...)
	return le.AppendUint32(h, uint32(size))
}

// speech says the input in silence. As with OpenAI, usage is stated in the sse
// form only.
func (c *call) speech() answer {
	input := withoutDirectives(c.fields.text("input"))
	c.served.Characters = utf8.RuneCountInString(c.fields.text("input"))
	if c.served.Characters > maxSpoken {
		return c.invalid(fmt.Sprintf("'input' is longer than %d characters", maxSpoken))
	}
	words := len(strings.Fields(input))
	c.served.Seconds = float64(words) * secondsPerWord
	sound, kind, err := silence(c.fields.text("response_format"), c.served.Seconds)
	if err != nil {
		return c.invalid(err.Error())
	}
	t := c.bill(tokens{input: c.prompt.words(), output: int64(words)})
	if c.fields.text("stream_format") == "sse" {
		s := c.stream()
		for _, part := range split(sound, max(c.d.chunks, 2)) {
			s.data(object{"type": "speech.audio.delta", "audio": base64.StdEncoding.EncodeToString(part)})
		}
		return s.done(c, "speech.audio", object{}, object{"input_tokens": t.input, "output_tokens": t.output, "total_tokens": t.total()})
	}
	if c.d.chunks < 1 {
		return answer{kind: kind, body: sound}
	}
	return answer{kind: kind, frames: split(sound, c.d.chunks)}
}

// done ends a stream of sound or of a transcript: its last event states usage.
func (s *stream) done(c *call, kind string, last, usage object) answer {
	last["type"] = kind + ".done"
	s.stateUsage(c.addUsage(last, "usage", usage))
	s.data(last)
	return s.answer
}

// split cuts bytes into at most n parts, none of them empty.
func split(b []byte, n int) [][]byte {
	n = min(n, len(b))
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = b[i*len(b)/n : (i+1)*len(b)/n]
	}
	return parts
}

// The length of a file is told from its size: what 16-bit mono sound at 16 kHz
// takes. Its audio tokens are tenths of a second.
const (
	bytesPerSecond  = 32000
	tokensPerSecond = 10
)

// transcription serves transcriptions and translations. Models whose name
// begins with whisper state a duration, the others tokens.
func (c *call) transcription() answer {
	seconds := max(float64(c.files[0]/bytesPerSecond), 1)
	if c.d.seconds >= 0 {
		seconds = c.d.seconds
	}
	c.served.Seconds = seconds
	m := c.complete(0, 1)
	usage := c.transcriptUsage(seconds, int64(len(m.words)))
	if c.fields.flag("stream") {
		s := c.stream()
		for _, piece := range m.pieces {
			s.data(object{"type": "transcript.text.delta", "delta": piece})
		}
		return s.done(c, "transcript.text", object{"text": m.text()}, usage)
	}
	text, plain := m.text(), "text/plain; charset=utf-8"
	switch format := c.fields.text("response_format"); format {
	case "text":
		return answer{kind: plain, body: []byte(text + "\n")}
	case "srt":
		return answer{kind: plain, body: fmt.Appendf(nil, "1\n00:00:00,000 --> 00:00:01,000\n%s\n\n", text)}
	case "vtt":
		return answer{kind: plain, body: fmt.Appendf(nil, "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n%s\n\n", text)}
	case "", "json", "verbose_json":
		reply := object{"text": text}
		if format == "verbose_json" {
			reply["task"], reply["language"], reply["duration"] = "transcribe", "english", seconds
			reply["segments"] = []object{{"id": 0, "seek": 0, "start": 0, "end": seconds, "text": text, "tokens": []int{}, "temperature": 0, "avg_logprob": -0.1, "compression_ratio": 1, "no_speech_prob": 0}}
		}
		return c.reply(reply, "usage", usage)
	default:
		return c.invalid(fmt.Sprintf("the simulator does not write %q", format))
	}
}

func (c *call) transcriptUsage(seconds float64, words int64) object {
	if strings.HasPrefix(c.served.Model, "whisper") {
		return object{"type": "duration", "seconds": seconds}
	}
	text, sound := c.prompt.words(), int64(seconds*tokensPerSecond)
	t := c.bill(tokens{input: text + sound, output: words})
	return object{
		"type": "tokens", "input_tokens": t.input, "output_tokens": t.output, "total_tokens": t.total(),
		"input_token_details": object{"text_tokens": t.input - min(sound, t.input), "audio_tokens": min(sound, t.input)},
	}
}
