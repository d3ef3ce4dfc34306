package simulator

import (
	"encoding/binary"
	"hash/crc32"
)

// amazonMessage is one message of application/vnd.amazon.eventstream: the lengths of
// all and of the headers with their checksum, the headers, the payload, and the
// checksum of all. Kind is event or exception.
func amazonMessage(kind, name string, payload object) []byte {
	text := encode(payload)
	var headers []byte
	for _, h := range [...][2]string{{":" + kind + "-type", name}, {":content-type", "application/json"}, {":message-type", kind}} {
		const isText = 7
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(binary.BigEndian.AppendUint16(append(headers, isText), uint16(len(h[1]))), h[1]...)
	}
	const around = 4 + 4 + 4 + 4
	b := binary.BigEndian.AppendUint32(nil, uint32(around+len(headers)+len(text)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), text...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
