package modelgate

// GroupBy is what statistics are summed by: a built-in dimension or an
// attribution key (GET /gw/stats).
type GroupBy string

// The built-in dimensions. Their names are reserved: an attribution key that
// is spelled like one is kept with its rows and cannot be grouped on.
const (
	ByProvider  GroupBy = "provider"
	ByModel     GroupBy = "model"
	ByModelSlug GroupBy = "model_slug"
	ByAuthor    GroupBy = "author"
	ByDay       GroupBy = "day"
	ByRegion    GroupBy = "region"
)

// BuiltIn reports whether the rows themselves have the dimension; all others
// are attribution keys.
func (g GroupBy) BuiltIn() bool {
	switch g {
	case ByProvider, ByModel, ByModelSlug, ByAuthor, ByDay, ByRegion:
		return true
	}
	return false
}

// The buckets of rows that have no key in a dimension. A row without the
// attribution key is in the bucket "".
const (
	BucketOther   = "other"   // of model_slug and author: the route is not catalogued
	BucketUnknown = "unknown" // of region
)

// StatsBucket is what the calls of one key come to.
type StatsBucket struct {
	Key         string
	Requests    int64
	TotalTokens int64
	Cost        Nano
}

// MaxAttributionKey is the length of the longest attribution key.
const MaxAttributionKey = 64

// IsAttributionKey reports whether a text can be the key of an attribution
// pair: 1..MaxAttributionKey of A-Z a-z 0-9 _ . and -.
func IsAttributionKey(k string) bool {
	return spelled(k, MaxAttributionKey, alphanumerics+"_.-")
}
