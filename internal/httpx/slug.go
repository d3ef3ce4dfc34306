package httpx

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"modelgate"
)

const (
	// mostNear bounds how many slugs are suggested.
	mostNear = 3
	// longestSlug bounds, in bytes, the slug to which others are compared.
	longestSlug = 100
)

// SuggestModels adds to an error about a slug that the catalog does not have the
// slugs of the nearest models that may be meant, the nearest first.
func SuggestModels(err error, slug string, models []*modelgate.Model, meant func(*modelgate.Model) bool) error {
	if len(slug) > longestSlug {
		return err
	}
	type candidate struct {
		slug     string
		distance int
	}
	var near []candidate
	for _, m := range models {
		distance, ok := slugDistance(strings.ToLower(slug), strings.ToLower(m.Slug))
		if ok && meant(m) {
			near = append(near, candidate{m.Slug, distance})
		}
	}
	if len(near) == 0 {
		return err
	}
	slices.SortFunc(near, func(a, b candidate) int { return cmp.Or(a.distance-b.distance, strings.Compare(a.slug, b.slug)) })
	var slugs []string
	for _, n := range near[:min(len(near), mostNear)] {
		slugs = append(slugs, n.slug)
	}
	return &modelgate.DetailError{Err: err, Detail: "did you mean " + strings.Join(slugs, " or ") + "?"}
}

// slugDistance is how many characters a slug differs from one of the catalog, and
// whether that is few. A name without its author, or with another, is compared
// with the name alone.
func slugDistance(slug, known string) (distance int, few bool) {
	author, name, _ := strings.Cut(known, "/")
	givenAuthor, givenName, whole := strings.Cut(slug, "/")
	if !whole {
		givenAuthor, givenName = author, slug
	}
	most := 1 + len(name)/6
	if max(len(givenName), len(name))-min(len(givenName), len(name)) > most {
		return 0, false
	}
	distance = levenshtein.ComputeDistance(givenName, name)
	if distance > 0 {
		distance += min(levenshtein.ComputeDistance(givenAuthor, author), most)
	}
	return distance, distance <= most
}
