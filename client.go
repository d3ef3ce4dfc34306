package modelgate

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// RoutingPolicy says where an organization's calls may be served.
type RoutingPolicy string

// The routing policies.
const (
	RouteAny RoutingPolicy = "any"
	EUOnly   RoutingPolicy = "eu_only"
)

// Billing says how an organization pays its operator.
type Billing string

// The billing modes: an invoiced client has no balance, a manual one prepays.
const (
	Invoiced Billing = "invoiced"
	Manual   Billing = "manual"
)

// ClientStatus says whether an organization may use the gateway.
type ClientStatus string

// The states of an organization. The keys and sessions of a suspended one are
// refused as unknown; calls under way complete, and its jobs, billing events and
// reservations go on to their end.
const (
	ClientActive    ClientStatus = "active"
	ClientSuspended ClientStatus = "suspended"
)

// DefaultMaxKeys is the number of active keys an organization may hold unless
// the operator set another.
const DefaultMaxKeys = 1000

// DefaultMaxRules is the number of budgets and rate limits with counters of their
// own that an organization may set for itself unless the operator set another,
// of at most MaxRules.
const (
	DefaultMaxRules = 1000
	MaxRules        = 100_000
)

// Limits are the rate and concurrency limits of one key. A nil field means
// not set here: a key's falls back to its client's, a client's to the
// configuration's. Zero means unlimited.
type Limits struct {
	RequestsPerSecond *int `json:"requests_per_second,omitempty"`
	Burst             *int `json:"burst,omitempty"`
	Concurrency       *int `json:"concurrency,omitempty"`
}

// Or fills the fields that are not set from those of other.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		RequestsPerSecond: cmp.Or(l.RequestsPerSecond, other.RequestsPerSecond),
		Burst:             cmp.Or(l.Burst, other.Burst),
		Concurrency:       cmp.Or(l.Concurrency, other.Concurrency),
	}
}

// Shared are the limits of a key as they bind its descendants too: its own,
// none where it has none. A burst goes with a rate, and falls back like the
// key's.
func (l Limits) Shared(client Limits) Limits {
	var none int
	shared := Limits{RequestsPerSecond: l.RequestsPerSecond, Concurrency: l.Concurrency}.Or(Limits{RequestsPerSecond: &none, Concurrency: &none})
	shared.Burst = l.Or(client).Burst
	return shared
}

// Client is an organization: a tenant of the gateway.
type Client struct {
	ID            ClientID      `json:"id"`
	Name          string        `json:"name"`
	Status        ClientStatus  `json:"status"` // "" is ClientActive
	RoutingPolicy RoutingPolicy `json:"routing_policy"`
	Billing       Billing       `json:"billing"`
	MaxKeys       int           `json:"max_keys"`
	MaxRules      int           `json:"max_rules"` // 0 is DefaultMaxRules
	Limits        Limits        `json:"limits"`
	Ceiling       Ceiling       `json:"ceiling"`
	CreatedAt     time.Time     `json:"created_at"`
}

// Validate checks the fields that an operator sets, and trims the name. Errors
// are bad_request.
func (c *Client) Validate() error {
	var err error
	if c.Name, err = CleanName(c.Name); err != nil {
		return err
	}
	c.Status, c.MaxRules = cmp.Or(c.Status, ClientActive), cmp.Or(c.MaxRules, DefaultMaxRules)
	switch {
	case c.Status != ClientActive && c.Status != ClientSuspended:
		return Errorf(BadRequest, "status must be active or suspended")
	case c.RoutingPolicy != RouteAny && c.RoutingPolicy != EUOnly:
		return Errorf(BadRequest, "routing policy must be any or eu_only")
	case c.Billing != Invoiced && c.Billing != Manual:
		return Errorf(BadRequest, "billing must be invoiced or manual")
	case c.MaxKeys < 0:
		return Errorf(BadRequest, "max keys must not be negative")
	case c.MaxRules < 1 || c.MaxRules > MaxRules:
		return Errorf(BadRequest, "max rules must be from 1 to %d", MaxRules)
	}
	if err := c.Limits.Validate(); err != nil {
		return err
	}
	return c.Ceiling.Validate()
}

// Validate refuses negative limits.
func (l Limits) Validate() error {
	for _, v := range []*int{l.RequestsPerSecond, l.Burst, l.Concurrency} {
		if v != nil && *v < 0 {
			return Errorf(BadRequest, "limits must not be negative; 0 means unlimited")
		}
	}
	return nil
}

// NamesOrganization reports whether a member of a body or a parameter of a query
// names an organization. The organization is that of the key, so such a name is
// ignored wherever it comes.
func NamesOrganization(name string) bool {
	switch name {
	case "client_id", "organization_id", "org_id", "org", "organization", "tenant", "tenant_id":
		return true
	}
	return false
}

// vertexInEU are the locations of Google Cloud in the EU. London (europe-west2)
// and Zurich (europe-west6) are in Europe and not among them.
var vertexInEU = []string{
	"europe-west1", "europe-west3", "europe-west4", "europe-west8", "europe-west9", "europe-west10", "europe-west12",
	"europe-north1", "europe-north2", "europe-southwest1", "europe-central2",
}

// InEU reports whether a region counts as in the EU: in an operator's words eu and
// what begins with eu-, and the regions of AWS and Google Cloud that are. The
// regions eu-west-2 and eu-central-2 of AWS, and zones in them, are in London and
// Zurich.
func InEU(region string) bool {
	for _, outside := range [...]string{"eu-west-2", "eu-central-2"} {
		if rest, ok := strings.CutPrefix(region, outside); ok && (rest == "" || rest[0] < '0' || rest[0] > '9') {
			return false
		}
	}
	switch {
	case region == "eu", slices.Contains(vertexInEU, region):
		return true
	}
	rest, ok := strings.CutPrefix(region, "eu-")
	if !ok {
		rest, ok = strings.CutPrefix(region, "eusc-") // the European Sovereign Cloud of AWS
	}
	return ok && rest != ""
}

// ModelRegion says where a provider computes some of its models.
type ModelRegion struct {
	Model  string // glob over the provider's own id
	Region string
}

// RegionOf is where a provider computes a model: as the first of the list says that
// matches, else where it computes the others.
func RegionOf(list []ModelRegion, model, others string) string {
	for _, r := range list {
		if Glob(r.Model, model) {
			return r.Region
		}
	}
	return others
}
