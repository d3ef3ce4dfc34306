package gateway

import (
	"modelgate"
	"modelgate/internal/provider"
	"modelgate/internal/provider/reqscan"
)

// Snapshot is the part of the configuration that a reload can change. It is
// immutable; a call uses one Live from its beginning to its end.
type Snapshot struct {
	Catalog   *modelgate.Catalog
	Providers map[string]*provider.Provider

	names  *reqscan.Names // every body member that a door or proxy path reads
	budget *reqscan.Names // those that have a role in a demand
	tools  *reqscan.Names // members of a tool that tell who runs it
}

// NewLive puts a catalog and providers together.
func NewLive(catalog *modelgate.Catalog, providers map[string]*provider.Provider) *Snapshot {
	names := append(provider.OrderNames(), "model", "stream", "stream_options")
	names = append(names, budgetNames()...)
	for _, p := range providers {
		names = append(names, p.BodyNames()...)
	}
	return &Snapshot{Catalog: catalog, Providers: providers, names: reqscan.NewNames(names...), budget: reqscan.NewNames(budgetNames()...),
		tools: reqscan.NewNames(toolNames()...)}
}
