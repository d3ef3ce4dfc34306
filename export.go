package modelgate

import (
	"math"
	"math/big"
	"math/bits"
	"time"
)

// Mapping says which customer of the organization's payment processor a
// sub-account is.
type Mapping struct {
	SubAccountID SubAccountID `json:"sub_account_id"`
	CustomerID   string       `json:"stripe_customer_id"`
}

// CheckCustomerID checks the id of a customer of the payment processor:
// letters, digits, _ and -, at most 255. Errors are bad_request.
func CheckCustomerID(id string) error {
	if !spelled(id, 255, alphanumerics+"_-") {
		return Errorf(BadRequest, "stripe_customer_id must be the id of a customer, such as cus_123")
	}
	return nil
}

// ExportStatus is the state of a billing event.
type ExportStatus string

// The states of a billing event.
const (
	ExportPending ExportStatus = "pending"
	ExportSent    ExportStatus = "sent"
	ExportFailed  ExportStatus = "failed"
	// ExportCarried is no state of an event: the row was billed less than a
	// micro-USD, which the sub-account's next event takes along. It is not
	// listed.
	ExportCarried ExportStatus = "carried"
)

// The bounds of sending. The processor forgets the identifiers of events after
// a day, and takes none that are older than 35
// (https://docs.stripe.com/billing/subscriptions/usage-based/recording-usage-api).
const (
	// ExportUnsure is for how long after a try of unknown outcome an event may
	// be sent again: until then the processor tells that it has it.
	ExportUnsure = 23 * time.Hour
	// ExportLife is how old a call may be whose event is still sent.
	ExportLife = 34 * 24 * time.Hour
)

const (
	firstExportPause = 5 * time.Second
	lastExportPause  = 15 * time.Minute
)

// ExportPause is how long an event waits after so many tries, 1 and more:
// 5 s, doubled each time, to 15 minutes.
func ExportPause(attempts int) time.Duration {
	if attempts > 8 { // 5 s << 8 is past the end
		return lastExportPause
	}
	return min(firstExportPause<<max(attempts-1, 0), lastExportPause)
}

// ExportEvent is what one usage row is billed at. Zero times mean that it has not
// happened or will not.
type ExportEvent struct {
	UsageID       UsageID
	ClientID      ClientID
	SubAccountID  SubAccountID
	CustomerID    string // as it was mapped when the event was queued
	Status        ExportStatus
	Attempts      int
	Value         Micro
	CreatedAt     time.Time // when the call was made
	NextAttemptAt time.Time
	SentAt        time.Time
	LastError     string
}

// Micro is an amount in millionths of a US dollar.
type Micro int64

// USD is the amount as money, held at the end of its range.
func (m Micro) USD() Nano { return Nano(min(m, math.MaxInt64/1000)) * 1000 }

// Carry is a part of a micro-USD that was billed and not yet sent, in
// 1e-17 USD: from 0 to below one micro-USD.
type Carry int64

// wholeCarry is a micro-USD in units of Carry. A Nano times a markup of
// wholeMarkup and more comes out in that unit.
const wholeCarry = 1000 * uint64(wholeMarkup)

// Bill is a cost's price in whole micro-USD, with what was carried before, and
// what is carried on. Nothing is rounded: the sum of all prices and the last
// carry is the exact price of the sum. A cost below 0 is taken as 0.
func (n Nano) Bill(m Markup, carried Carry) (Micro, Carry) {
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(wholeMarkup+m))
	lo, over := bits.Add64(lo, uint64(carried), 0)
	value, rest := bits.Div64(hi+over, lo, wholeCarry) // hi is below 2^33
	return Micro(value), Carry(rest)
}

// Exact is a cost's price in units of Carry, not rounded.
func (n Nano) Exact(m Markup) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(int64(wholeMarkup+m)))
}

// Exact is the amount in units of Carry.
func (m Micro) Exact() *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(m)), new(big.Int).SetUint64(wholeCarry))
}
