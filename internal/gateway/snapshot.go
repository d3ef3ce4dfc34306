package gateway

import (
	"modelgate"
	"modelgate/internal/provider"
	"modelgate/internal/provider/costbound"
	"modelgate/internal/provider/reqscan"
)

// Snapshot is the part of the configuration that a reload can change. It is
// immutable; a call uses one from its beginning to its end.
type Snapshot struct {
	Catalog   *modelgate.Catalog
	Providers map[string]*provider.Provider

	names  *reqscan.Names // every body member that a door or proxy path reads
	bounds *costbound.Reader
}

// NewSnapshot puts a catalog and providers together.
func NewSnapshot(catalog *modelgate.Catalog, providers map[string]*provider.Provider) *Snapshot {
	names := append(provider.UnitFieldNames(), "model", "stream", "stream_options", "anthropic_version")
	names = append(names, costbound.Members()...)
	for _, p := range providers {
		names = append(names, p.BodyNames()...)
	}
	return &Snapshot{Catalog: catalog, Providers: providers, names: reqscan.NewNames(names...), bounds: costbound.NewReader()}
}
