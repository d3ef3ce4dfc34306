package gateway

import (
	"time"

	"modelgate"
	"modelgate/internal/budget"
	"modelgate/internal/cancelctx"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/provider/costbound"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/usage"
	"modelgate/internal/ratelimit"
)

// call is the state of one call. Its fields stand in the order in which the steps
// of run fill them, and no step reads what a later one writes.
type call struct {
	inbound
	texts      *textRatios
	pass       ratelimit.Pass
	entryRates ratelimit.Taken // of the rate limits on entry

	// resolve
	attribution map[string]string
	room        httpx.Reservation   // what the body takes, to the end of the call
	upload      time.Duration       // until the client had sent its body
	body        []byte              // as the client sent it, where more than one route may want it
	bySlug      bool                // a door: the model was named by its slug
	model       *modelgate.Model    // nil where the route is not catalogued
	free        bool                // cannot cost anything: lists, token counts
	jobKind     modelgate.ModelKind // of the job that the call makes, if it makes one
	attempts    []attempt           // the routes in order, at least one

	bound costbound.Bound

	// authorize keeps of attempts what may serve the call

	// rates
	callRates ratelimit.Taken // of the other rate limits
	estimated bool            // for them: what it used helps to estimate others

	// reserve
	reservation budget.Reservation

	// forward
	upstream  cancelctx.Context // of the request to the provider
	stall     *stallTimer
	out       *provider.Attempt // the first that may be sent; nil before there is one
	begun     bool              // BEGIN is written
	readyAt   time.Time         // when the gateway was ready to send it
	tried     int               // the attempt under way
	sent      bool              // bytes of the request have left for a provider
	firstByte time.Time
	status    int // of the answer to the client; 0 before there is one
	client    disconnectWatcher
	meter     usage.Meter
	stream    bool  // the reply is one of events
	replied   int64 // bytes of the reply so far
	spillover bool  // another deployment answered than the one that was asked
	whole     bool  // the reply came to its end
	cut       bool  // it broke off, or its END failed
	marks     marks
	computed  *modelgate.Nano // the cost by the catalog of a reply that states one; nil where either is unknown
	guessed   bool            // its usage is not what the reply stated
	// costOnAnswer: the answer says what it costs.
	costOnAnswer bool

	job      *modelgate.NewJob // that the call has made
	jobUsage modelgate.Usage   // that it will probably have
	sentWith string            // the fingerprint of the credential

	// finish
	ended     bool      // END is written
	closingAt time.Time // when the gateway began to close its books
}

// attempt is one route that may serve a call.
type attempt struct {
	name      string // of the provider
	provider  *provider.Provider
	wrongDoor bool                  // the provider has no path for the door
	protocol  *provider.JobProtocol // of the job that the call makes; nil for none
	model     string                // the provider's own id; "" for a call that names none
	others    []string
	price     *modelgate.Price
	reader    *usage.Reader
	tier      string               // of a reply that names none
	requested usage.RequestedUnits // what the request says of what is to be made
	out       provider.Call
	edits     []reqscan.Edit // make its body of the call's, once it is its turn; nil where it has its own
	size      int64          // of the body that was sent, in bytes
	inject    bool           // the gateway asks for the usage of a stream; see usage.ChunkFilter
}

// kind is what the called model makes, "" where that is unknown.
func (c *call) kind() modelgate.ModelKind {
	if c.model == nil {
		return c.jobKind
	}
	return c.model.Kind
}

// region is where the provider computes the model.
func (a *attempt) region() string { return a.provider.Region(a.model) }

// routeName names the route for what is remembered of its calls.
func (a *attempt) routeName() routeName { return routeName{a.name, a.model} }
