// Package modelgate holds the domain types of Modelgate, a self-hosted gateway
// between clients and model providers: keys, callers, entitlements, the
// catalog, prices, money, usage. It knows neither HTTP nor SQL and imports
// only the standard library. The HTTP API is the one compatibility promise;
// these types may change with any release.
//
// The steps of a call, in order (docs/architecture.md has the long form):
//
//	listen     internal/http1server  plain requests; the rest is net/http's
//	           internal/httpx        request id, panic fence, size bounds
//	identify   internal/auth         presented secret → Caller
//	enter      internal/gateway      scope, then rate and concurrency (internal/ratelimit)
//	resolve    internal/gateway      door: slug → route; proxy: path and body → native model
//	authorize  internal/gateway      entitlements, region policy
//	rates      internal/ratelimit    tokens, dollars and more per minute, as the rules in internal/quota say
//	reserve    internal/budget       money reserved on balance and budgets
//	forward    internal/gateway      credential of a live provider, streaming copy
//	meter      internal/provider/usage  usage read out of the bytes as they pass
//	record     internal/spool        one durable entry; internal/worker ships it into internal/store
//
// Beside the way of a call:
//
//	internal/selfservice  the /gw API; internal/dashboard  pages and sessions
//	internal/people       people who sign in with an account of an OpenID provider
//	internal/operator     the API of whoever runs the gateway, /operator/v1
//	internal/jobs         asynchronous jobs; internal/worker  background loops
//	internal/processor    the client of the payment processor
//	internal/report, internal/focus  sums of calls, and FOCUS files of them
//	internal/callquery    the answers to questions about calls, for /gw and /operator/v1
//	internal/callview, internal/budgetview, internal/keyview, internal/modelview, internal/csvfile  how calls, budgets, keys and models are shown
//	internal/secrets      what is kept encrypted; internal/signing  which key signs evidence
//	internal/evidence     records, chain and verifier of evidence; internal/pricing  costs
//	internal/cloud        credentials of the operator's own AWS, Google Cloud and Azure; internal/cloudhost  their host names
//	internal/tracing      OpenTelemetry traces
//	internal/cancelctx    contexts and calls under way; internal/yield, internal/atomicfile, internal/httpfield, internal/null  helpers
//	internal/simulator    the simulated providers of `modelgate dev` and of tests; internal/cli/demo  dev's providers and models
//	test/testkit          what tests need around the gateway; test/e2e and test/security use it
//
// Refusals have one precedence on every surface: 401, 403 scope, 429, 413 and
// malformed requests, 404 and wrong kind or door, 403 model, 403 region,
// 402 balance, 402 budget, 502 route.
//
// Packages are in layers and import from lower ones only. From below: this one;
// parts of the adapters (provider/http1, store/sqlite and others); the adapters
// (config, store, spool, auth, ratelimit, provider, http1server, httpx); jobs and
// worker; gateway and selfservice; internal/server, which puts them together; cli
// and cmd/modelgate, the command line, whose text internal/terminal lays out.
// test/arch lists the layers and fails on an import that goes up.
//
// Where to add things: a provider is a row in internal/provider, a door a row
// in internal/gateway, an endpoint under /gw a row in internal/selfservice with a
// query in internal/store, a description in internal/openapi/openapi.yaml and a script
// in spec, a configuration key a field in internal/config.
package modelgate
