package reqscan

import (
	"bytes"
	"encoding/binary"
)

// RecordingLength is the length of a WAV or MP3 file in millionths of a second, by
// what its bytes hold and not by what its head says of them. It reports false
// for any other file, and for one that readers could take for a longer one.
func RecordingLength(file []byte) (int64, bool) {
	if bytes.HasPrefix(file, []byte("RIFF")) {
		return waveLength(file)
	}
	return mp3Length(file)
}

// waveLength reads PCM, whose every byte takes its time.
func waveLength(file []byte) (int64, bool) {
	if len(file) < 12 || string(file[8:12]) != "WAVE" {
		return 0, false
	}
	var format []byte
	for rest := file[12:]; len(rest) >= 8; {
		id, size := string(rest[:4]), int(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[8:]
		switch {
		case id == "data":
			return pcmLength(format, len(rest)) // a size that is too small is corrected by some readers
		case size > len(rest) || id == "fmt " && (format != nil || size < 16):
			return 0, false
		case id == "fmt ":
			format = rest[:size]
		}
		rest = rest[min(size+size%2, len(rest)):]
	}
	return 0, false
}

// pcmLength is how long so many bytes last in a format that agrees with
// itself.
func pcmLength(format []byte, size int) (int64, bool) {
	if format == nil {
		return 0, false
	}
	u16 := func(at int) int64 { return int64(binary.LittleEndian.Uint16(format[at:])) }
	u32 := func(at int) int64 { return int64(binary.LittleEndian.Uint32(format[at:])) }
	tag, channels, rate, perSecond, block, bits := u16(0), u16(2), u32(4), u32(8), u16(12), u16(14)
	if tag == 0xfffe && len(format) >= 26 { // WAVE_FORMAT_EXTENSIBLE names the format later
		tag = u16(24)
	}
	pcm := (tag == 1 || tag == 3) && bits%8 == 0 || (tag == 6 || tag == 7) && bits == 8
	if !pcm || perSecond == 0 || block != channels*bits/8 || perSecond != rate*block {
		return 0, false
	}
	return int64(float64(size) / float64(perSecond) * 1e6), true
}

// strayBytes is how much of an MP3 file may be no frames: tags that stand
// where nobody looks for them.
const strayBytes = 64 << 10

// mp3Length adds the frames up, as a decoder does.
func mp3Length(file []byte) (int64, bool) {
	file = withoutID3(file)
	length, stray, frames := 0.0, 0, 0
	for len(file) >= 4 {
		size, seconds := mp3Frame(file)
		if size == 0 {
			file, stray = file[1:], stray+1
			continue
		}
		length, frames = length+seconds, frames+1
		file = file[min(size, len(file)):]
	}
	return int64(length * 1e6), frames > 0 && stray <= strayBytes
}

// withoutID3 takes the tag off that MP3 files begin with.
func withoutID3(file []byte) []byte {
	if len(file) < 10 || string(file[:3]) != "ID3" {
		return file
	}
	size := 10
	for i, b := range file[6:10] {
		size += int(b&0x7f) << (21 - 7*i)
	}
	if size > len(file) {
		return nil
	}
	return file[size:]
}

// mp3Frame is the size in bytes and the length in seconds of the frame of MPEG
// layer III that b begins with; size 0 where it begins with none.
func mp3Frame(b []byte) (size int, seconds float64) {
	if b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return 0, 0
	}
	version, layer, bitrate, rate, padding := b[1]>>3&3, b[1]>>1&3, b[2]>>4, b[2]>>2&3, int(b[2]>>1&1)
	if version == 1 || layer != 1 || bitrate == 0 || bitrate == 15 || rate == 3 {
		return 0, 0
	}
	hertz := [3]int{44100, 48000, 32000}[rate]
	kilobits := [14]int{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}[bitrate-1]
	samples := 1152
	if version != 3 { // MPEG-2 and 2.5 halve the rate
		hertz, samples = hertz/2, samples/2
		kilobits = [14]int{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}[bitrate-1]
	}
	if version == 0 {
		hertz /= 2
	}
	return samples/8*kilobits*1000/hertz + padding, float64(samples) / float64(hertz)
}
