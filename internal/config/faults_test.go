package config_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate/internal/config"
)

// check is what Check finds in a text, with the variable SET set to "from the
// environment".
func check(t *testing.T, text string, others ...string) []string {
	t.Helper()
	path := write(t, text, others...)
	faults, _ := config.Check(path, env(map[string]string{"SET": "from the environment"}))
	_, err := config.Load(path, env(map[string]string{"SET": "from the environment"}))
	var found config.Faults
	if errors.As(err, &found); cmp.Diff([]config.Fault(found), faults) != "" {
		t.Errorf("Load finds %v, Check %v", err, faults)
	}
	return shown(filepath.Dir(path), faults)
}

const oneProvider = "providers:\n  - name: a\n    format: openai\n    base_url: https://a\n    credential: k\n"

// Each file is wrong in one way.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"syntax", "server: [\n", "1:9: is not valid YAML: sequence end token ']' not found"},
		{"tab", "server:\n\tlisten: x\n", "2:1: is indented with a tab; YAML wants spaces"},
		{"variable between braces", "a: 1\nredis: {url: ${SET}}\n", `2:15: is not valid YAML: ',' or '}' must be specified; between { } or [ ], put quotes around "${NAME}"`},
		{"list at the top", "- server\n", "1:1: want keys and values, not a list"},
		{"text at the top", "server\n", "1:1: want keys and values, not a single value"},
		{"two documents", "log: {}\n---\nlog: {}\n", "3:1: is a second document; keep everything in one, without --- between"},
		{"deep", strings.Repeat("[", 200), "1:1: is nested more than 100 levels deep"},
		{"unknown section", "\nlimit: 5\n", "2:1: limit: unknown key; did you mean limits?"},
		{"unknown key", "log:\n  colour: red\n", "2:3: log.colour: unknown key; the keys here are format, level"},
		{"letter case", "log: {Level: info}\n", "1:7: log.Level: unknown key; did you mean level?"},
		{"duplicate key", "log:\n  level: info\n  format: text\n  level: warn\n", "4:3: log.level: is already set in line 2; keep one of the two"},
		{"duplicate section", "log: {}\nredis: {}\nlog: {}\n", "3:1: log: is already set in line 1; keep one of the two"},
		{"anchor", "log: &x {level: info}\n", "1:1: log: anchors, aliases and tags are not supported; write the value out"},
		{"tag", "log: {level: !!str info}\n", "1:7: log.level: anchors, aliases and tags are not supported; write the value out"},
		{"merge", "log:\n  <<: {level: info}\n", "2:3: merge keys and keys that are not text are not supported; write the keys out"},
		{"complex key", "? log\n: {}\n", "1:1: merge keys and keys that are not text are not supported; write the keys out"},
		{"section is a text", "log: info\n", "1:6: log: want keys and values, not a single value"},
		{"list is a text", "catalog_files: a.yaml\n", "1:16: catalog_files: want a list, not a single value; begin each entry with -"},
		{"list is keys", "providers:\n  name: a\n", "1:1: providers: want a list, not keys and values; begin each entry with -"},
		{"empty entry", "providers:\n  -\n", "2:5: providers[0]: is an empty entry; remove the -"},
		{"text is a number", "server: {data_dir: 123}\n", "1:20: server.data_dir: want text; put the value in quotes"},
		{"text is a list", "server:\n  listen: [a]\n", "2:3: server.listen: want text, not a list"},
		{"number is a text", "limits: {burst: many}\n", "1:17: limits.burst: want a whole number, without quotes"},
		{"number in quotes", "limits: {burst: \"5\"}\n", "1:17: limits.burst: want a whole number, without quotes"},
		{"number with decimals", "limits: {burst: 1.5}\n", "1:17: limits.burst: want a whole number, without quotes"},
		{"number in hexadecimal", "limits: {burst: 0x10}\n", "1:17: limits.burst: want a whole number, without quotes"},
		{"enforcement", "enforcement: {budgets: hard}\n", "1:24: enforcement.budgets: want estimate, strict or off, or true or false"},
		{"traces elsewhere", "telemetry: {otlp_endpoint: \"localhost:4318\"}\n", "1:28: telemetry.otlp_endpoint: want http:// or https:// and a host"},
		{"too many traces", "telemetry: {sample_percent: 101}\n", "1:29: telemetry.sample_percent: must be from 0 to 100"},
		{"webhook without a key", "alerts: {webhook_url: \"https://a/b\"}\n", "1:1: alerts.secret: is needed with webhook_url, so that its receiver can tell alerts from forgeries"},
		{"webhook elsewhere", "alerts: {webhook_url: \"ftp://a\", secret: k}\n", "1:23: alerts.webhook_url: want http:// or https:// and a host"},
		{"short master key", "master_key: bm90IGxvbmcgZW5vdWdo\n", "1:13: master_key: want 32 bytes in base64, as openssl rand -base64 32 prints them"},
		{"previous keys alone", "previous_master_keys: [MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=]\n", "1:1: previous_master_keys: needs master_key beside it"},
		{"processor elsewhere", "processor: {base_url: \"https://a/v1\"}\n", "1:23: processor.base_url: must not have a path"},
		{"no meter", "processor: {meter_event_name: \"\"}\n", "1:31: processor.meter_event_name: must have from 1 to 100 characters"},
		{"short webhook secret", "processor: {api_key: sk, webhook_secret: whsec_1}\n", "1:42: processor.webhook_secret: must have at least 16 characters"},
		{"huge number", "limits: {burst: 99999999999999999999}\n", "1:17: limits.burst: want a whole number, without quotes"},
		{"rule on the clock with a burst", "limits:\n  rules: [{scope: key, unit: tokens, window: hour, limit: 5, burst: 6}]\n", "2:11: limits.rules[0]: burst must be left out for window hour"},
		{"rule by the week", "limits:\n  rules: [{scope: key, unit: tokens, window: week, limit: 5}]\n", "2:11: limits.rules[0]: window must be minute, hour or day for unit tokens"},
		{"rule without a unit", "limits:\n  rules: [{scope: gateway, window: day, limit: 5}]\n", "2:11: limits.rules[0]: unit must be requests, input_tokens, output_tokens, tokens, usd or concurrency"},
		{"rule of nobody", "limits:\n  rules: [{scope: all, unit: requests, window: day, limit: 5}]\n", "2:11: limits.rules[0]: scope must be gateway, client, sub_account or key"},
		{"rule twice", "limits:\n  rules: [{scope: key, unit: usd, window: day, limit: 5}, {scope: key, unit: usd, window: day, limit: 6}]\n", "2:59: limits.rules[1]: there is another rule of this scope, match, unit and window"},
		{"negative number", "limits:\n  burst: -1\n", "2:10: limits.burst: must not be negative"},
		{"negative duration", "server: {drain_delay: -5s}\n", "1:23: server.drain_delay: must not be negative"},
		{"duration without unit", "server: {drain_delay: 5}\n", "1:23: server.drain_delay: want a duration such as 500ms, 5s or 1m30s"},
		{"long duration", "server: {drain_delay: 11m}\n", "1:23: server.drain_delay: must be at most 10m"},
		{"size", "server: {max_request_bytes: 10MB}\n", "1:29: server.max_request_bytes: want a number of bytes such as 10485760 or 10MiB"},
		{"size past all bounds", "server: {max_request_bytes: 8000000TiB}\n", "1:29: server.max_request_bytes: must be from 1 to 1GiB"},
		{"size that overflows", "server: {max_request_bytes: 9000000000TiB}\n", "1:29: server.max_request_bytes: want a number of bytes such as 10485760 or 10MiB"},
		{"zero size", "server: {max_request_bytes: 0}\n", "1:29: server.max_request_bytes: must be from 1 to 1GiB"},
		{"short retention", "metering: {retention_days: 61}\n", "1:28: metering.retention_days: must be 0, or from 62 to 36500"},
		{"negative retention", "metering: {retention_days: -1}\n", "1:28: metering.retention_days: must be 0, or from 62 to 36500"},
		{"small spool", "metering: {spool_max_bytes: 1MiB}\n", "1:29: metering.spool_max_bytes: must be at least 128MiB"},
		{"choice", "metering: {fsync: never}\n", "1:19: metering.fsync: want one of always, interval"},
		{"log level", "log: {level: verbose}\n", "1:14: log.level: want debug, info, warn or error"},
		{"log format", "log: {format: xml}\n", "1:15: log.format: want one of auto, text, json"},
		{"listen", "server: {listen: \"8080\"}\n", "1:18: server.listen: want host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080"},
		{"port", "server: {listen: \":70000\"}\n", "1:18: server.listen: want host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080"},
		{"same listeners", "server: {admin_listen: 127.0.0.1:8080}\n", "1:24: server.admin_listen: must differ from listen; leave it empty to have metrics on the main listener"},
		{"base url", "server: {base_url: gate.example}\n", "1:20: server.base_url: want http:// or https:// and a host"},
		{"base url with path", "server: {base_url: http://gate.example/x}\n", "1:20: server.base_url: must not have a path"},
		{"data dir", "server: {data_dir: \"\"}\n", "1:20: server.data_dir: must not be empty"},
		{"certificate alone", "server: {tls: {cert_file: a.pem}}\n", "1:27: server.tls.cert_file: needs key_file beside it"},
		{"key alone", "server: {tls: {key_file: a.pem}}\n", "1:26: server.tls.key_file: needs cert_file beside it"},
		{"database", "database: {url: mysql://user:hush@db/x}\n", "1:17: database.url: want sqlite:FILE or postgres://user:password@host:5432/name"},
		{"redis", "redis: {url: \"http://:hush@cache\"}\n", "1:14: redis.url: want redis://host:6379/0 or rediss://…, or leave it empty"},
		{"redis database", "redis: {url: \"redis://cache/main\"}\n", "1:14: redis.url: want the number of a database after the host, such as /0"},
		{"redis parameters", "redis: {url: \"redis://cache/0?protocol=3\"}\n", "1:14: redis.url: takes nothing behind ? or #"},
		{"unset variable", "redis:\n  url: ${REDIS_URL}\n", "2:8: redis.url: environment variable REDIS_URL is not set; set it, or write ${REDIS_URL:-} if it may be empty"},
		{"lone dollar", "redis: {url: redis://a$b}\n", "1:14: redis.url: has a lone $; write ${NAME} for a variable and $$ for a dollar sign"},
		{"open brace", "redis:\n  url: ${A\n", "2:8: redis.url: has ${ without }"},
		{"variable name", "redis:\n  url: ${A-B}\n", "2:8: redis.url: has ${} with a name that no environment variable has; use letters, digits and _"},
		{"variable of the wrong type", "limits:\n  burst: ${SET}\n", "2:10: limits.burst: want a whole number, without quotes"},

		{"provider without name", "providers:\n  - format: openai\n    base_url: http://a\n", "2:5: providers[0].name: is missing"},
		{"provider without format", "providers:\n  - name: a\n    base_url: http://a\n", "2:5: providers[0].format: is missing"},
		{"provider without address", "providers:\n  - {name: a, format: openai}\n", "2:5: providers[0].base_url: is missing"},
		{"empty name", "providers:\n  - {name: \"\", format: openai, base_url: http://a}\n", "2:12: providers[0].name: must not be empty"},
		{"provider name", "providers:\n  - {name: Open_AI, format: openai, base_url: http://a}\n", "2:12: providers[0].name: want 1 to 64 of a-z, 0-9 and -"},
		{"same provider", oneProvider + "  - name: a\n    format: vllm\n    base_url: http://b\n", "6:11: providers[1].name: is already the name of the provider in line 2; names are unique"},
		{"format", "providers:\n  - {name: a, format: openia, base_url: http://a}\n", "2:23: providers[0].format: want one of openai, anthropic, gemini, azure-openai, mistral, deepseek, xai, groq, together, fireworks, openrouter, moonshot, zhipu, dashscope, ark, minimax, cohere, jina, voyage, fal, replicate, bedrock, vertex, vllm, ollama, generic"},
		{"provider address", "providers:\n  - {name: a, format: openai, base_url: ftp://a}\n", "2:41: providers[0].base_url: want http:// or https:// and a host"},
		{"address with query", "providers:\n  - {name: a, format: openai, base_url: \"http://a?b=c\"}\n", "2:41: providers[0].base_url: must not have a user, a query or a fragment"},
		{"two credentials", oneProvider + "    credential_file: f\n", "6:22: providers[0].credential_file: excludes credential; keep one of them"},
		{"credential with line break", "providers:\n  - {name: a, format: openai, base_url: http://a, credentials: [\"a\\nb\"]}\n", "2:65: providers[0].credentials[0]: must not have control characters and at most 8192 bytes"},
		{"auth", oneProvider + "    auth: basic\n", "6:11: providers[0].auth: want bearer, x-api-key, api-key, none, {header: …, prefix: …} or {query: …}"},
		{"auth of both", oneProvider + "    auth: {header: a, query: b}\n", "6:5: providers[0].auth: name a header or a query parameter, not both"},
		{"auth of nothing", oneProvider + "    auth: {}\n", "6:5: providers[0].auth: name a header or a query parameter; auth: none sends no key"},
		{"auth header", oneProvider + "    auth: {header: a b}\n", "6:20: providers[0].auth.header: is no header name"},
		{"auth prefix alone", oneProvider + "    auth: {query: a, prefix: b}\n", "6:30: providers[0].auth.prefix: goes with header only"},
		{"door", oneProvider + "    paths: {chats: /x}\n", "6:20: providers[0].paths.chats: no door has this name; the doors are chat, completions, messages, count_tokens, responses, images, image_edits, videos, embeddings, reranks, speech, transcriptions, translations"},
		{"door path", oneProvider + "    paths: {chat: x}\n", "6:19: providers[0].paths.chat: want a path that begins with /"},
		{"door path with dots", oneProvider + "    paths: {chat: /x/../y}\n", "6:19: providers[0].paths.chat: a path must not have . or .. or empty segments"},
		{"pattern", oneProvider + "    allow: [/v1/files]\n", "6:13: providers[0].allow[0]: want a method (or *), a space and a path that begins with /, such as GET /v1/files/**"},
		{"pattern with stars", oneProvider + "    allow: [GET /**/x]\n", "6:13: providers[0].allow[0]: ** must come last"},
		{"pattern with names", oneProvider + "    allow: [\"GET /{a}/{a}\"]\n", "6:13: providers[0].allow[0]: want a name of its own between { and } at the beginning of a segment"},
		{"header", oneProvider + "    headers: {Host: x}\n", "6:21: providers[0].headers.Host: belongs to the connection and cannot be set"},
		{"header value", oneProvider + "    headers: {X-A: \"a\\nb\"}\n", "6:20: providers[0].headers.X-A: must not have control characters"},
		{"header without value", oneProvider + "    headers: {X-A: }\n", "6:15: providers[0].headers.X-A: has no value"},
		{"timeout", oneProvider + "    timeouts: {connect: -1s}\n", "6:25: providers[0].timeouts.connect: must not be negative"},
		{"transport", oneProvider + "    transport: fast\n", "6:16: providers[0].transport: want one of pooled, standard"},
		{"on disconnect", oneProvider + "    on_disconnect: stop\n", "6:20: providers[0].on_disconnect: want one of drain, cancel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]string{c.want}, check(t, c.text)); diff != "" {
				t.Errorf("%s(-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestReservedProviderNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gw", "v1", "p", "healthz", "readyz", "metrics", "dashboard", "openapi.json", "webhooks"} {
		want := []string{"1:20: providers[0].name: is the first segment of the gateway's own paths; choose another name"}
		got := check(t, "providers: [{name: "+name+", format: vllm, base_url: \"http://a\"}]\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

const (
	entry  = "- slug: x/m\n  kind: llm\n  routes: [{provider: a, model: m}]\n"
	priced = entry + "  price:\n    input: 1\n"
)

// Each list of models is wrong in one way. It is read as a file of its own.
func TestCatalogFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"keys at the top", "catalog: []\n", "1:1: want a list, not keys and values; begin each entry with -"},
		{"no slug", "- kind: llm\n  routes: [{provider: a, model: m}]\n", "1:3: [0].slug: is missing"},
		{"no kind", "- slug: x/m\n  routes: [{provider: a, model: m}]\n", "1:3: [0].kind: is missing"},
		{"no routes", "- slug: x/m\n  kind: llm\n", "1:3: [0].routes: is missing; a model needs at least one route"},
		{"empty routes", "- slug: x/m\n  kind: llm\n  routes: []\n", "3:3: [0].routes: is missing; a model needs at least one route"},
		{"bad slug", "- slug: just-a-name\n  kind: llm\n  routes: [{provider: a, model: m}]\n", "1:9: [0].slug: want author/model of letters, digits and ._- (and :@/ after the first slash), beginning with a letter or digit"},
		{"same slug", entry + entry, "4:9: [1].slug: is in the catalog already, at more.yaml:1; slugs are unique, letter case aside"},
		{"same slug in other letters", entry + strings.Replace(entry, "x/m", "x/M", 1), "4:9: [1].slug: is in the catalog already, at more.yaml:1; slugs are unique, letter case aside"},
		{"slug of the main file", "- slug: main/model\n  kind: llm\n  routes: [{provider: a, model: m}]\n", "1:9: [0].slug: is in the catalog already, at modelgate.yaml:2; slugs are unique, letter case aside"},
		{"long model", "- slug: x/m\n  kind: llm\n  routes: [{provider: a, model: " + strings.Repeat("m", 257) + "}]\n", "3:33: [0].routes[0].model: has more than 256 bytes"},
		{"kind", "- slug: x/m\n  kind: text\n  routes: [{provider: a, model: m}]\n", "2:9: [0].kind: want one of llm, image, video, 3d, embedding, rerank, audio"},
		{"negative length", entry + "  context_length: -1\n", "4:19: [0].context_length: must not be negative"},
		{"date", entry + "  created: yesterday\n", "4:12: [0].created: want a date such as 2026-12-01 or a time such as 2026-12-01T08:00:00Z"},
		{"route without model", "- slug: x/m\n  kind: llm\n  routes:\n    - provider: a\n", "4:7: [0].routes[0].model: is missing"},
		{"same route", "- slug: x/m\n  kind: llm\n  routes:\n    - {provider: a, model: m}\n    - {provider: a, model: m}\n", "5:7: [0].routes[1]: is the same provider and model as an earlier route; remove one"},
		{"unit", priced + "    outptu: 2\n", "6:5: [0].price.outptu: unknown key; did you mean output?"},
		{"price of nothing", entry + "  price: {}\n", "4:3: [0].price: names no unit; give one, such as input, or leave the price out if it is not known"},
		{"price is a number", entry + "  price: 3\n", "4:10: [0].price: want keys and values, not a single value"},
		{"negative price", entry + "  price: {input: -1}\n", "4:18: [0].price.input: must be from 0 to 1,000,000 USD"},
		{"price too fine", entry + "  price: {input: 0.0000000001}\n", "4:18: [0].price.input: want a number with at most 9 decimals, without quotes"},
		{"price in quotes", entry + "  price: {input: \"1\"}\n", "4:18: [0].price.input: want a number with at most 9 decimals, without quotes"},
		{"price too high", entry + "  price: {image: 1000000000}\n", "4:18: [0].price.image: must be from 0 to 1,000,000 USD"},
		{"price is infinite", entry + "  price: {input: .inf}\n", "4:18: [0].price.input: want a number with at most 9 decimals, without quotes"},
		{"no pictures", entry + "  price: {image: []}\n", "4:11: [0].price.image: is an empty list; give one number or a price by size and quality"},
		{"picture without price", entry + "  price:\n    image:\n      - {size: 1x1}\n", "6:9: [0].price.image[0].usd: is missing"},
		{"negative picture", entry + "  price: {image: [{usd: -1}]}\n", "4:25: [0].price.image[0].usd: must be from 0 to 1,000,000 USD"},
		{"pictures in a tier", priced + "    tiers: [{above: 5, image: [{usd: 1}]}]\n", "6:24: [0].price.tiers[0].image: a list by size and quality belongs to the price itself; give one number here"},
		{"tier without bound", priced + "    tiers:\n      - input: 2\n", "7:9: [0].price.tiers[0].above: is missing"},
		{"tier above nothing", priced + "    tiers: [{above: 0, input: 2}]\n", "6:21: [0].price.tiers[0].above: must be at least 1"},
		{"same tier", priced + "    tiers: [{above: 5, input: 2}, {above: 5, input: 3}]\n", "6:43: [0].price.tiers[1].above: is the same as in an earlier entry"},
		{"empty tier", priced + "    tiers: [{above: 5}]\n", "6:13: [0].price.tiers[0]: names no unit; give one, such as input, or remove the entry"},
		{"dated without date", priced + "    dated: [{input: 2}]\n", "6:13: [0].price.dated[0].from: is missing"},
		{"same date", priced + "    dated: [{from: 2026-12-01, input: 2}, {from: 2026-12-01T01:00:00+01:00, input: 3}]\n", "6:50: [0].price.dated[1].from: is the same as in an earlier entry"},
		{"window without end", priced + "    windows: [{from: \"01:00\", input: 2}]\n", "6:15: [0].price.windows[0].to: is missing"},
		{"window of nothing", priced + "    windows: [{from: \"01:00\", to: \"01:00\", input: 2}]\n", "6:35: [0].price.windows[0].to: is the same as from; use 00:00 and 24:00 for the whole day"},
		{"window in seconds", priced + "    windows: [{from: \"01:00:00\", to: \"02:00\", input: 2}]\n", "6:22: [0].price.windows[0].from: want a time of the day, UTC, from 00:00 to 24:00"},
		{"second and minute", entry + "  price: {second: 1, minute: 2}\n", "4:3: [0].price: second and minute are one quantity; give one"},
		{"second in a tier, minute", entry + "  price: {minute: 2, tiers: [{above: 1, second: 1}]}\n", "4:3: [0].price: second and minute are one quantity; give one"},
		{"dated that ends before it begins", priced + "    dated: [{from: 2026-12-01, until: 2026-12-01, input: 2}]\n", "6:39: [0].price.dated[0].until: must be after from"},
		{"dated without change", priced + "    dated: [{from: 2026-12-01}]\n", "6:13: [0].price.dated[0]: names no unit; give one, such as input, or remove the entry"},
		{"day of a window", priced + "    windows: [{from: \"01:00\", to: \"02:00\", days: [monday], input: 2}]\n", "6:51: [0].price.windows[0].days[0]: want one of sun, mon, tue, wed, thu, fri, sat"},
		{"variant of nothing", priced + "    variants: [{above: 2, input: 2}]\n", "6:16: [0].price.variants[0]: names no field of the answer; give service_tier, speed or inference_geo"},
		{"variant without a unit", priced + "    variants: [{speed: fast}]\n", "6:16: [0].price.variants[0]: names no unit; give one, such as input, or remove the entry"},
		{"same variant", priced + "    variants: [{speed: fast, input: 2}, {speed: fast, input: 3}]\n", "6:41: [0].price.variants[1]: has the same fields and above as an earlier entry"},
		{"multiplier field", priced + "    multipliers: {tier: {a: 1}}\n", "6:19: [0].price.multipliers.tier: unknown key; the keys here are inference_geo, service_tier, speed"},
		{"multiplier below zero", priced + "    multipliers: {speed: {fast: -1}}\n", "6:33: [0].price.multipliers.speed.fast: must be from 0 to 1000, with at most 6 decimals"},
		{"multiplier too fine", priced + "    multipliers: {speed: {fast: 0.0000001}}\n", "6:33: [0].price.multipliers.speed.fast: must be from 0 to 1000, with at most 6 decimals"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			main := "catalog:\n  - {slug: main/model, kind: llm, routes: [{provider: a, model: m}]}\ncatalog_files: [more.yaml]\n"
			if diff := cmp.Diff([]string{"more.yaml:" + c.want}, check(t, main, "more.yaml", c.text)); diff != "" {
				t.Errorf("%s(-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestPriceListFaults(t *testing.T) {
	t.Parallel()
	want := []string{
		"2:5: prices[0].model: is missing",
		"2:5: prices[0].price: is missing",
		"3:26: prices[1].model: in a glob only * and ? are special; [ ] and \\ match themselves and no model id has them",
		"4:26: prices[2].model: must not be empty",
		"5:26: prices[3].model: a glob has at most 256 bytes",
	}
	got := check(t, `prices:
  - {provider: a}
  - {provider: a, model: "gpt-[45]", price: {input: 1}}
  - {provider: a, model: "", price: {input: 1}}
  - {provider: a, model: "`+strings.Repeat("x", 257)+`", price: {input: 1}}
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissingFiles(t *testing.T) {
	t.Parallel()
	path := write(t, "catalog_files: [gone.yaml, \"[\", \"\"]\n")
	faults, _ := config.Check(path, env(nil))
	want := []string{
		"1:28: catalog_files[1]: is no valid glob; close every [ and do not end with \\",
		"1:33: catalog_files[2]: must not be empty",
		"gone.yaml:0:0: cannot be opened: no such file or directory",
	}
	got := shown(filepath.Dir(path), faults)
	if len(got) == 3 && strings.HasPrefix(got[0], "gone") {
		got = append(got[1:], got[0])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	gone := filepath.Join(filepath.Dir(path), "none.yaml")
	if _, err := config.Load(gone, env(nil)); err == nil || err.Error() != gone+": cannot be opened: no such file or directory" {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := config.Load(filepath.Dir(path), env(nil)); err == nil || !strings.HasSuffix(err.Error(), "is it a file?") {
		t.Errorf("a directory: %v", err)
	}
}

// All faults come at once, in the order of their lines, and say nothing of
// what the environment holds.
func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	got := check(t, `server:
  listen: nowhere
  lsiten: 127.0.0.1:1
  drain_delay: ${SET}
limits: {burst: -1, concurrency: x}
providers:
  - {name: gw, format: none, base_url: "${SET}"}
  - {name: b}
catalog:
  - {slug: a}
`)
	want := []string{
		"2:11: server.listen: want host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080",
		"3:3: server.lsiten: unknown key; did you mean listen?",
		"4:16: server.drain_delay: want a duration such as 500ms, 5s or 1m30s",
		"5:17: limits.burst: must not be negative",
		"5:34: limits.concurrency: want a whole number, without quotes",
		"7:12: providers[0].name: is the first segment of the gateway's own paths; choose another name",
		"7:24: providers[0].format: want one of openai, ",
		"7:40: providers[0].base_url: want http:// or https:// and a host",
		"8:5: providers[1].format: is missing",
		"8:5: providers[1].base_url: is missing",
		"10:5: catalog[0].kind: is missing",
		"10:5: catalog[0].routes: is missing; a model needs at least one route",
		"10:12: catalog[0].slug: want author/model of letters",
	}
	if len(got) != len(want) {
		t.Fatalf("%d faults, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("fault %d: %s\nwant %s", i, got[i], want[i])
		}
	}
	if all := strings.Join(got, "\n"); strings.Contains(all, "from the environment") {
		t.Errorf("the environment shows in %s", all)
	}
}
