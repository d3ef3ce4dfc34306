// Package processor speaks to the payment processor, whose wire format is
// Stripe's: it reports billing events, creates customers and sessions of
// checkout, and reads webhooks.
//
// Nothing is tried twice here: that is for those who know what a second try
// may cost. The texts of errors are made of what the gateway itself knows, so
// that no key can come out with what a processor says.
package processor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/stripe/stripe-go/v85"
)

// Options are what New needs.
type Options struct {
	// BaseURL is the processor's address, without a path.
	BaseURL string
	// Meter is the event name of the meter that counts usage.
	Meter string
	// Timeout bounds one call; 0 means 20 seconds.
	Timeout time.Duration
	// Control judges the address of each connection (net.Dialer); nil lets all
	// pass.
	Control func(network, address string, c syscall.RawConn) error
	// Transport carries the calls; nil means one of its own.
	Transport http.RoundTripper
}

const (
	usualTimeout = 20 * time.Second
	dialTimeout  = 5 * time.Second
	// idleConns covers the calls that are under way at once.
	idleConns = 64
)

// Client calls the processor, with a key that each call brings. Safe for
// concurrent use.
type Client struct {
	Options
}

// New makes a Client.
func New(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = usualTimeout
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTimeout, Control: o.Control}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			MaxIdleConns:        idleConns,
			MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   true,
		}
	}
	return &Client{o}
}

// call makes one call with a key and judges how it came out.
func (c *Client) call(ctx context.Context, key string, do func(context.Context, *stripe.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	seen := &observer{next: c.Transport}
	retries := int64(0)
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL:               stripe.String(c.BaseURL),
		MaxNetworkRetries: &retries,
		EnableTelemetry:   stripe.Bool(false),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		HTTPClient: &http.Client{
			Transport:     seen,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	err := do(ctx, stripe.NewClient(key, stripe.WithBackends(backends)))
	return seen.judge(err, key)
}

// Event is one report of usage.
type Event struct {
	ID       string // the usage row's; the processor counts it once a day
	Customer string
	Value    int64 // micro-USD
	At       time.Time
	// Try tells the tries of one event apart. The processor replays the first
	// answer to a key that comes again, a 500 too; so each try has its own, and
	// the id is what keeps an event from being counted twice.
	Try string
}

// Report reports usage. nil means that the processor has it, from this or an
// earlier try; for any other outcome see OutcomeOf.
func (c *Client) Report(ctx context.Context, key string, e Event) error {
	err := c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		p := &stripe.BillingMeterEventCreateParams{
			EventName:  &c.Meter,
			Identifier: &e.ID,
			Timestamp:  stripe.Int64(e.At.Unix()),
			Payload:    map[string]string{"stripe_customer_id": e.Customer, "value": strconv.FormatInt(e.Value, 10)},
		}
		p.SetIdempotencyKey(e.ID + "-" + e.Try)
		_, err := s.V1BillingMeterEvents.Create(ctx, p)
		return err
	})
	// Taken is taken, whatever the rest of the answer says.
	if e, ok := errors.AsType[*Error](err); ok && e.Status >= 200 && e.Status <= 299 {
		return nil
	}
	return err
}

// NewCustomer is a customer to be.
type NewCustomer struct {
	Name         string
	SubAccountID string // kept with the customer
	// Once keeps two requests with the same text from making two customers.
	Once string
}

// CreateCustomer makes a customer and returns its id.
func (c *Client) CreateCustomer(ctx context.Context, key string, n NewCustomer) (id string, err error) {
	err = c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		p := &stripe.CustomerCreateParams{Name: &n.Name}
		p.AddMetadata("sub_account_id", n.SubAccountID)
		p.SetIdempotencyKey(n.Once)
		made, err := s.V1Customers.Create(ctx, p)
		if err == nil {
			id = made.ID
		}
		return err
	})
	if err == nil && id == "" {
		err = &Error{Outcome: Unsure, Status: http.StatusOK, text: "the processor's answer names no customer"}
	}
	return id, err
}
