package usage

import (
	"math/rand/v2"

	"modelgate"
)

// feed gives the body in the pieces that next asks for and returns the
// outcome and how often the meter said that the end was there.
func feed(m Meter, body []byte, next func(left int) int) (u modelgate.Usage, seen Seen, terminal int) {
	for len(body) > 0 {
		n := next(len(body))
		// The piece is overwritten afterwards, as a relay's buffer is.
		piece := append([]byte(nil), body[:n]...)
		if m.Feed(piece) {
			terminal++
		}
		clear(piece)
		body = body[n:]
	}
	u, seen = m.Result()
	m.Close()
	return u, seen, terminal
}

func whole(left int) int  { return left }
func oneByte(int) int     { return 1 }
func random(left int) int { return 1 + rand.IntN(min(left, 97)) }

// Feed, Whole, OneByte and Random are the above for the tests outside the package.
func Feed(m Meter, body []byte, next func(left int) int) (modelgate.Usage, Seen, int) {
	return feed(m, body, next)
}

func Whole(left int) int   { return whole(left) }
func OneByte(left int) int { return oneByte(left) }
func Random(left int) int  { return random(left) }
