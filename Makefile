.DEFAULT_GOAL := help
.PHONY: help run test test-short test-full test-agents generate check bench bench-peers bench-ablate profile microbench fuzz prove-books prove-access prove-money prove-prices prove-starter prove-scale prove-billing prove-pages prove-history prove-calls prove-async prove-clouds prove-attacks soak pages build build-optimized man check-deploy release check-release clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' Makefile

run: pages ## start a gateway with simulated providers on this machine
	@scripts/run

test: ## install what tests need, and run what a change needs (eight minutes)
	scripts/test

test-short: ## run the tests that need nothing but Go (a minute)
	scripts/test short

test-full: ## run everything with the race detector, and fuzz (an hour)
	scripts/test full

test-agents: ## install coding agents into a cache and run their pages in docs/clients (a minute)
	scripts/agents

generate: ## write the clients and the reference anew from internal/openapi/openapi.yaml
	scripts/generate

check: ## run the linters
	scripts/check

bench: build-optimized ## compare the gateway with a bare proxy, nginx and the provider itself (an hour)
	go run ./bench -large -postgres -write docs

bench-peers: build-optimized ## compare the gateway with other products, obtained into a cache (ten minutes)
	go run ./bench -peers -rounds 6 -slice 1s -write docs

bench-ablate: build-optimized ## what the gateway's own HTTP server and client save, each switched off in turn (five minutes)
	go run ./bench -ablate

profile: build-optimized ## record anew under which profile the gateway is compiled (two minutes)
	go run ./bench -targets interval -only '1 KB|100 KB, c=8|burst' -slice 8s -profile cmd/modelgate/default.pgo

microbench: ## run the benchmarks of every package
	go test -run '^$$' -bench . -benchmem ./...

fuzz: ## search with every fuzz target for half a minute (an hour)
	scripts/fuzz

prove-books: ## lose nothing and book nothing twice, at full size (half an hour)
	go test -count=1 -v -timeout 2h -run 'TestBooks' ./test/e2e -full

prove-access: ## who may do what, and how fast a revocation holds, at full size (ten minutes)
	go test -count=1 -rapid.checks 20000 -run 'Admit|Issuance|Permit|SingleModel|Deny' .
	go test -count=1 -v -timeout 1h -parallel 1 -run 'TestAccess' ./test/e2e -full
	go test -count=1 -v -timeout 1h -run 'TestTokensInPages' ./cmd/modelgate -token-rounds 100

prove-calls: ## calls and reports against sums over all rows, 20,000 random questions each
	go test -count=1 -v -timeout 1h -run 'TestCallsAgainstRows|TestReportsAgainstRows' ./internal/store -full

prove-money: build ## budgets that hold at every moment, at full size, and what they cost (twenty minutes)
	go test -count=1 -v -timeout 1h -run 'TestEveryOrderOfEvents' ./internal/budget -states 600000
	go test -count=1 -v -run 'TestFirstCallsOfANewEndUser' ./internal/gateway -new-users 1000
	go test -count=1 -v -timeout 1h -run 'TestRulesWhileBooking' ./internal/store -rule-cycles 2000
	go test -count=1 -v -timeout 1h -parallel 1 -run 'TestMoney' ./test/e2e -full
	go test -count=1 -v -run 'TestOrderOfUse' ./internal/store/wallet -full
	go test -count=1 -v -run 'TestMarkupIsFrozen' ./internal/store -full
	go test -count=1 -v -run 'TestTopUpDeliveries' ./internal/selfservice -full
	go run ./bench -unbudgeted -rounds 6 -slice 12s -targets 'interval|no budgets' -only '^door, 1 KB, c=(32|256)$$'

prove-prices: ## what calls cost, against second computations, 100,000 cases each (half an hour)
	go test ./internal/pricing -count=1 -timeout 1h -rapid.checks 100000 -run 'CostIsExact|BoundIsNeverBelowCost|CostGrowsWithEachUnit|EvidenceCost'

prove-starter: ## the starter catalog against calcPrice of genai-prices, which is fetched from npm (a minute)
	dir=$$(mktemp -d) && (cd $$dir && npm pack --silent @pydantic/genai-prices@0.1.8 && tar xzf *.tgz) && \
	go test -count=1 -v -run 'TestStarterCostsWhat' ./internal/config -genai-prices $$dir/package; status=$$?; rm -rf $$dir; exit $$status

prove-scale: ## three instances at 1,000 calls a second lose nothing while everything restarts (two minutes)
	go test -count=1 -v -timeout 30m -run 'TestScale' ./test/e2e -full

prove-billing: ## bill every call once, credit every payment once, at full size (half an hour)
	go test -count=1 -v -timeout 2h -run 'TestBilling' ./test/e2e -full

prove-pages: ## every look of every page, and each interactive within a second however much it shows (two minutes)
	go test -count=1 -v -timeout 30m -parallel 1 -run 'TestPages' ./test/e2e -full

prove-history: ## statistics stay fast and evidence cannot be altered unseen, at full size
	go test -count=1 -v -timeout 2h -parallel 1 -run 'TestHistory' ./test/e2e -full

prove-async: ## jobs end once and at their cost, whatever dies, at full size (ten minutes)
	go test -count=1 -v -timeout 1h -run 'TestAsync' ./test/e2e -full

prove-clouds: ## tokens that live for seconds, and a token service that is away, at full size (half an hour)
	go test -count=1 -v -timeout 2h -parallel 1 -run 'TestCloud' ./test/e2e -full

prove-attacks: ## five thousand slow clients, and a tenant that takes all it can, beside honest calls (a minute)
	go test -count=1 -v -timeout 10m -parallel 1 -run 'TestSlowClients|TestConnectionsRunOut|TestNoisyNeighbour' ./test/security -full

soak: ## twenty minutes at 300 calls a second, with reloads and a database that restarts
	go test -count=1 -v -timeout 1h -run 'TestSoak' ./test/e2e -full

pages: ## build the dashboard and the portal, where Node.js is there
	scripts/pages

build: pages ## make bin/modelgate, one static binary
	CGO_ENABLED=0 go build -pgo=off -trimpath -ldflags '-s -w' -o bin/modelgate ./cmd/modelgate

build-optimized: pages ## make bin/modelgate as it is released, compiled under its profile (a minute)
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/modelgate ./cmd/modelgate

man: ## write the manual pages and shell completions into dist/man
	go run ./internal/cli/man dist/man devel

check-deploy: ## read compose file, chart, alert rules and dashboard with their own libraries
	cd test/deploy && go test -count=1 ./...

release: pages ## build dist/: archives for five targets, SBOMs, checksums, provenance; VERSION=v1.2.3
	scripts/release $(VERSION)

check-release: ## build the release twice, in two folders, and compare the bytes (five minutes)
	scripts/check-release

clean: ## remove what build and test left
	rm -rf bin dist test/sdk/node_modules clients/typescript/node_modules clients/typescript/dist
	rm -rf test/browser/node_modules test/browser/screenshots web/node_modules internal/dashboard/dist/*
