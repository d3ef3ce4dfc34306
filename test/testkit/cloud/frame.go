package cloud

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Frame is a message of application/vnd.amazon.eventstream. Headers are texts, in
// pairs of name and value.
func Frame(payload string, headers ...string) []byte {
	var h []byte
	for i := 0; i+1 < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	return RawFrame(h, payload)
}

// RawFrame is Frame with headers that are encoded already.
func RawFrame(headers []byte, payload string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// Event is the message for an event of a type.
func Event(name, payload string) []byte {
	return Frame(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// Chunk is the message in which InvokeModelWithResponseStream sends an event of the
// model's own API.
func Chunk(event string) []byte {
	coded := base64.StdEncoding.EncodeToString([]byte(event))
	return Event("chunk", fmt.Sprintf(`{"bytes":%q,"p":"abcd"}`, coded))
}

// Exception is the message for an exception.
func Exception(name, payload string) []byte {
	return Frame(payload, ":exception-type", name, ":content-type", "application/json", ":message-type", "exception")
}
