package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// Origin is who wrote a record. Each record holds it.
type Origin struct {
	Instance string // whose spool the call was in
	Software string // version of the program
}

// timeLayout is how records write an instant: UTC, always microseconds.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// FormatTime is an instant as records write it.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// members writes an object. The caller adds the members in the order of their
// names.
type members struct{ b []byte }

func (m *members) name(name string) {
	if last := m.b[len(m.b)-1]; last != '{' {
		m.b = append(m.b, ',')
	}
	m.b = append(append(append(m.b, '"'), name...), '"', ':')
}

func (m *members) text(name, value string) {
	m.name(name)
	m.b = appendText(m.b, value)
}

func (m *members) uuid(name string, u modelgate.UUID) {
	m.name(name)
	m.b, _ = u.AppendText(append(m.b, '"')) // never fails
	m.b = append(m.b, '"')
}

// orNull writes null for a text that there is none of.
func (m *members) orNull(name, value string) {
	if value == "" {
		m.name(name)
		m.b = append(m.b, "null"...)
		return
	}
	m.text(name, value)
}

func (m *members) integer(name string, value int64) {
	m.name(name)
	m.b = strconv.AppendInt(m.b, value, 10)
}

func (m *members) at(name string, t time.Time) {
	m.name(name)
	m.b = append(m.b, '"')
	m.b = append(appendTime(m.b, t), '"')
}

// appendTime appends an instant as FormatTime writes it. RFC3339Nano is a layout
// that the library writes fast, and a nanosecond more keeps its zeros.
func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().Truncate(time.Microsecond).Add(time.Nanosecond).AppendFormat(dst, time.RFC3339Nano)
	return append(dst[:len(dst)-len("001Z")], 'Z')
}

// money writes an amount as text with nine decimals.
func (m *members) money(name string, n modelgate.Nano) {
	m.name(name)
	m.b = append(appendMoney(append(m.b, '"'), n), '"')
}

func appendMoney(dst []byte, n modelgate.Nano) []byte {
	u := uint64(n)
	if n < 0 {
		dst, u = append(dst, '-'), -u
	}
	dst = append(strconv.AppendUint(dst, u/uint64(modelgate.USD), 10), '.')
	rest := strconv.AppendUint(make([]byte, 0, 20), u%uint64(modelgate.USD)+uint64(modelgate.USD), 10)
	return append(dst, rest[1:]...)
}

func (m *members) open(name string) {
	m.name(name)
	m.b = append(m.b, '{')
}

func (m *members) close() { m.b = append(m.b, '}') }

// usage writes what of a usage is not empty, by the names.
func (m *members) usage(u *modelgate.Usage) {
	type member struct {
		name  string
		count int64
		word  string
	}
	var room [modelgate.CounterCount + modelgate.WordCount]member
	used := room[:0]
	for i, n := range u.Counters() {
		if n != nil && *n != 0 {
			used = append(used, member{name: modelgate.CounterName(i), count: *n})
		}
	}
	for i, word := range u.Words() {
		if *word != "" {
			used = append(used, member{name: modelgate.WordName(i), word: *word})
		}
	}
	slices.SortFunc(used, func(a, b member) int { return strings.Compare(a.name, b.name) })
	m.open("quantities")
	for _, one := range used {
		if one.word != "" {
			m.text(one.name, one.word)
		} else {
			m.integer(one.name, one.count)
		}
	}
	m.close()
}

// wallet says what the sub-account's wallet paid, and at which markup; nothing
// where no wallet did.
func (m *members) wallet(begin *modelgate.CallBegin, end *modelgate.CallEnd) {
	if begin.WalletMarkup != nil {
		m.money("wallet_debit_usd", begin.Debit(end.Cost))
		percent, _ := begin.WalletMarkup.MarshalJSON() // never fails
		m.text("wallet_markup", string(percent))
	}
}

func (m *members) tokens(u *modelgate.Usage) {
	m.open("tokens")
	m.integer("in", u.InputTokens())
	m.integer("out", u.OutputTokens())
	m.integer("total", u.TotalTokens())
	m.close()
}

// AppendUsage appends the record of a booked call: model, usage, cost and price.
// It has neither the call's attribution nor any of its content.
func AppendUsage(dst []byte, row *modelgate.UsageRow, by Origin) []byte {
	begin, end := &row.CallBegin, &row.CallEnd
	m := members{append(dst, '{')}
	m.at("at", begin.At)
	m.orNull("author", begin.Author)
	m.text("client_id", string(begin.ClientID))
	m.money("cost_usd", end.Cost)
	m.text("door", begin.Door)
	m.at("ended_at", begin.At.Add(time.Duration(end.LatencyMS)*time.Millisecond))
	m.uuid("id", begin.ID)
	m.text("instance", by.Instance)
	m.text("key_id", string(begin.KeyID))
	m.orNull("kind", string(begin.Kind))
	m.integer("latency_ms", end.LatencyMS)
	m.text("model", begin.Model)
	m.orNull("model_slug", begin.Slug)
	m.text("parse_status", string(end.ParseStatus))
	m.text("price_version", end.PriceLabel)
	m.text("provider", begin.Provider)
	m.usage(&end.Usage)
	m.text("region", begin.Region)
	m.integer("status_code", int64(end.StatusCode))
	m.orNull("sub_account_id", string(begin.SubAccountID))
	m.text("sw", by.Software)
	m.tokens(&end.Usage)
	m.text("type", "usage")
	m.integer("v", 1)
	m.wallet(begin, end)
	m.close()
	return m.b
}

// Final is the final state of a row that was provisional.
type Final struct {
	Row      *modelgate.UsageRow // as it is now
	Previous modelgate.Nano      // the cost that the row had until now
	At       time.Time
}

// AppendFinal appends the record of a row that became final. It refers to
// the record of the row, whose cost it replaces.
func AppendFinal(dst []byte, f Final, by Origin) []byte {
	begin, end := &f.Row.CallBegin, &f.Row.CallEnd
	m := members{append(dst, '{')}
	m.at("at", f.At)
	m.text("client_id", string(begin.ClientID))
	m.money("cost_usd", end.Cost)
	m.text("instance", by.Instance)
	m.text("parse_status", string(end.ParseStatus))
	m.money("previous_cost_usd", f.Previous)
	m.text("price_version", end.PriceLabel)
	m.usage(&end.Usage)
	m.text("ref", begin.ID.String())
	m.orNull("sub_account_id", string(begin.SubAccountID))
	m.text("sw", by.Software)
	m.tokens(&end.Usage)
	m.text("type", "usage.final")
	m.integer("v", 1)
	m.wallet(begin, end)
	m.close()
	return m.b
}

// maxChange bounds what a record holds of a change, in bytes. A
// larger one is represented by its length and its SHA-256.
const maxChange = 64 << 10

// AppendAudit appends the record of a change. It fails where Change is not
// JSON, or Actor says nothing.
func AppendAudit(dst []byte, a *modelgate.Audit) ([]byte, error) {
	m := members{append(dst, '{')}
	m.text("action", a.Action)
	m.open("actor")
	switch {
	case a.Actor.KeyID != "":
		m.text("key_id", string(a.Actor.KeyID))
	case a.Actor.Operator != "":
		m.text("operator", a.Actor.Operator)
	case a.Actor.PersonID != "":
		m.text("person_id", string(a.Actor.PersonID))
	case a.Actor.System:
		m.name("system")
		m.b = append(m.b, "true"...)
	default:
		return dst, errors.New("a record of a change needs an actor")
	}
	m.close()
	m.at("at", a.At)
	m.name("change")
	var err error
	if m.b, err = appendChange(m.b, a.Change); err != nil {
		return dst, err
	}
	m.text("client_id", string(a.ClientID))
	m.text("id", a.ID)
	m.orNull("request_id", a.RequestID)
	m.text("result", "ok")
	m.open("target")
	m.text("id", a.TargetID)
	m.text("type", a.TargetType)
	m.close()
	m.text("type", "audit")
	m.integer("v", 1)
	m.close()
	return m.b, nil
}

func appendChange(dst []byte, change json.RawMessage) ([]byte, error) {
	if len(change) == 0 {
		return append(dst, "null"...), nil
	}
	text, err := recordForm(change)
	if err != nil {
		return dst, err
	}
	if len(text) <= maxChange {
		return append(dst, text...), nil
	}
	sum := sha256.Sum256(text)
	m := members{append(dst, '{')}
	m.integer("bytes", int64(len(text)))
	m.text("sha256", hex.EncodeToString(sum[:]))
	m.close()
	return m.b, nil
}
