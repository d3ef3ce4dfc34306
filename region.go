package modelgate

import (
	"slices"
	"strings"
)

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
