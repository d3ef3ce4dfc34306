-- +goose Up
-- version is raised by each change that instances have to learn of at once: of
-- keys, budgets and the like. session_version is raised when sessions are ended
-- and token_version when browser tokens are revoked; they are apart, so that this
-- makes no instance look up its keys again.
CREATE TABLE control (
    id              INTEGER PRIMARY KEY CHECK (id = 1),
    version         INTEGER NOT NULL,
    session_version INTEGER NOT NULL,
    token_version   INTEGER NOT NULL
) STRICT;
INSERT INTO control (id, version, session_version, token_version) VALUES (1, 1, 1, 1);

-- invoiced_spend is what a client had ever spent when it last became an
-- invoiced one: what it spends while it is does not count against its balance.
CREATE TABLE client (
    id                TEXT PRIMARY KEY CHECK (id <> ''),
    name              TEXT NOT NULL,
    status            TEXT NOT NULL DEFAULT 'active',
    routing_policy    TEXT NOT NULL,
    billing           TEXT NOT NULL,
    max_keys          INTEGER NOT NULL,
    max_rules         INTEGER NOT NULL,
    limit_rps         INTEGER,
    limit_burst       INTEGER,
    limit_concurrency INTEGER,
    ceiling           TEXT NOT NULL,
    invoiced_spend    INTEGER NOT NULL DEFAULT 0,
    created_at        INTEGER NOT NULL
) STRICT;

CREATE TABLE sub_account (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    client_id  TEXT NOT NULL REFERENCES client (id),
    name       TEXT NOT NULL,
    slug       TEXT NOT NULL,
    status     TEXT NOT NULL,
    markup     INTEGER NOT NULL,
    max_keys   INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (client_id, slug),
    UNIQUE (client_id, id)
) STRICT;

-- expires_at is the largest integer for a key that never expires, so that
-- counting a client's live keys is one range of api_key_live. issued_by is the
-- nearest ancestor that is not revoked, of a key that a key bound to a
-- sub-account has issued. self_issued marks keys that customers issued in a
-- portal. kind is 'dashboard' for the hidden key of a member, and owner its
-- person.
CREATE TABLE api_key (
    id                TEXT PRIMARY KEY CHECK (id <> ''),
    client_id         TEXT NOT NULL REFERENCES client (id),
    sub_account_id    TEXT,
    digest            BLOB NOT NULL UNIQUE,
    name              TEXT NOT NULL DEFAULT '',
    prefix            TEXT NOT NULL,
    status            TEXT NOT NULL,
    scopes            TEXT NOT NULL,
    entitlements      TEXT NOT NULL,
    denies            TEXT NOT NULL,
    backing           TEXT NOT NULL,
    limit_rps         INTEGER,
    limit_burst       INTEGER,
    limit_concurrency INTEGER,
    created_at        INTEGER NOT NULL,
    last_used_at      INTEGER NOT NULL,
    expires_at        INTEGER NOT NULL,
    issued_by         TEXT,
    self_issued       INTEGER NOT NULL DEFAULT 0,
    kind              TEXT NOT NULL DEFAULT 'key',
    owner             TEXT,
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
) STRICT;
CREATE INDEX api_key_newest ON api_key (client_id, created_at DESC, id DESC);
CREATE INDEX api_key_live ON api_key (client_id, expires_at) WHERE status = 'active' AND kind = 'key';
CREATE INDEX api_key_owner ON api_key (owner) WHERE owner IS NOT NULL;
CREATE INDEX api_key_issued_by ON api_key (issued_by) WHERE issued_by IS NOT NULL;

-- The ancestors that a key with issued_by had when it was issued, 1 its issuer.
-- What the key spends counts towards them for good: rows are never changed.
CREATE TABLE key_lineage (
    key_id      TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    ancestor_id TEXT NOT NULL,
    PRIMARY KEY (key_id, generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_lineage_ancestor ON key_lineage (ancestor_id);

-- Who signed in with an account of an OpenID provider. issuer and subject say who
-- it is; the rest is what the provider said last.
CREATE TABLE person (
    id           TEXT PRIMARY KEY CHECK (id <> ''),
    issuer       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    email        TEXT NOT NULL,
    name         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    UNIQUE (issuer, subject)
) STRICT;

-- Persons in organizations. api_key_id is the hidden key that calls of the
-- member's pages are made with.
CREATE TABLE member (
    client_id  TEXT NOT NULL REFERENCES client (id),
    person_id  TEXT NOT NULL REFERENCES person (id),
    role       TEXT NOT NULL,
    api_key_id TEXT NOT NULL REFERENCES api_key (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (client_id, person_id)
) STRICT;
CREATE INDEX member_person ON member (person_id);

-- Who is signed in to dashboard and portals. digest is the SHA-256 of what the
-- browser holds, kind what the session was opened with: a key, or an account of
-- the OpenID provider named provider, which calls the session provider_session.
-- api_key_id is that key, or the hidden one of the member. idle is how long the
-- session lasts without a request, in microseconds.
CREATE TABLE session (
    id               TEXT PRIMARY KEY CHECK (id <> ''),
    digest           BLOB NOT NULL UNIQUE,
    kind             TEXT NOT NULL,
    place            TEXT NOT NULL,
    client_id        TEXT NOT NULL REFERENCES client (id),
    api_key_id       TEXT REFERENCES api_key (id),
    person_id        TEXT REFERENCES person (id),
    provider         TEXT NOT NULL,
    provider_session TEXT NOT NULL,
    user_agent       TEXT NOT NULL,
    idle             INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    last_seen_at     INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX session_key ON session (api_key_id, created_at, id);
CREATE INDEX session_person ON session (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX session_newest ON session (client_id, created_at DESC, id DESC);
CREATE INDEX session_end ON session (expires_at);

-- Browser tokens, which stand for a key that minted them. amount is the cap, 0
-- for none; it is also a budget of scope token. origins is NULL for every page.
-- A token stays for a while after its end, so that what its calls cost is known.
CREATE TABLE browser_token (
    id                  TEXT PRIMARY KEY CHECK (id <> ''),
    client_id           TEXT NOT NULL REFERENCES client (id),
    sub_account_id      TEXT NOT NULL,
    api_key_id          TEXT NOT NULL REFERENCES api_key (id),
    digest              BLOB NOT NULL UNIQUE,
    end_user            TEXT NOT NULL,
    models              TEXT NOT NULL,
    origins             TEXT,
    attribution         TEXT NOT NULL,
    requests_per_minute INTEGER NOT NULL,
    amount              INTEGER NOT NULL CHECK (amount >= 0),
    revoked             INTEGER NOT NULL DEFAULT 0,
    created_at          INTEGER NOT NULL,
    expires_at          INTEGER NOT NULL
) STRICT;
CREATE INDEX browser_token_newest ON browser_token (client_id, created_at DESC, id DESC);
CREATE INDEX browser_token_live ON browser_token (client_id, expires_at) WHERE NOT revoked;
CREATE INDEX browser_token_user ON browser_token (client_id, end_user, expires_at) WHERE NOT revoked;
CREATE INDEX browser_token_end ON browser_token (expires_at);

-- The logout tokens of OpenID providers that were taken: each counts once.
CREATE TABLE logout_token (
    issuer     TEXT NOT NULL,
    token_id   TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, token_id)
) STRICT;
CREATE INDEX logout_token_end ON logout_token (expires_at);

-- Who may use the operator's API: tokens, sessions of the console, and links that
-- open a session once (kind). digest is the SHA-256 of the secret; parent is the
-- token that a session was opened with, '' for none. Sessions of accounts of an
-- OpenID provider have provider, issuer and subject, and what the provider calls
-- the session. idle is how long a session lasts without a request, in
-- microseconds, 0 for its whole life.
CREATE TABLE operator_token (
    id               TEXT PRIMARY KEY CHECK (id <> ''),
    digest           BLOB NOT NULL UNIQUE,
    name             TEXT NOT NULL,
    role             TEXT NOT NULL,
    kind             TEXT NOT NULL,
    parent           TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    provider         TEXT NOT NULL,
    issuer           TEXT NOT NULL,
    subject          TEXT NOT NULL,
    provider_session TEXT NOT NULL,
    idle             INTEGER NOT NULL,
    last_seen_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE branding (
    client_id        TEXT PRIMARY KEY REFERENCES client (id),
    portal_slug      TEXT NOT NULL UNIQUE,
    product_name     TEXT NOT NULL,
    logo_url         TEXT,
    accent_color     TEXT,
    allow_self_issue INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    id          TEXT PRIMARY KEY CHECK (id <> ''),
    at          INTEGER NOT NULL,
    client_id   TEXT NOT NULL,
    action      TEXT NOT NULL,
    actor       TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id   TEXT NOT NULL,
    change      TEXT,
    request_id  TEXT NOT NULL
) STRICT;
CREATE INDEX audit_client ON audit (client_id, id);
CREATE INDEX audit_action ON audit (action, id);

-- No foreign keys here: a call that was made is booked whatever has become of
-- its key, and each reference would cost a look-up per row.
--
-- wallet_markup is the markup at which the sub-account's wallet has paid the
-- wallet_debit, NULL where no wallet pays for the call.
--
-- created_at is the instant in the id, so that the id alone decides whether a
-- row is there already. With the client in front, the primary key is also the
-- order in which usage is read: an insertion costs one tree.
CREATE TABLE usage_row (
    id             TEXT NOT NULL,
    client_id      TEXT NOT NULL CHECK (client_id <> ''),
    key_id         TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,
    slug           TEXT NOT NULL,
    author         TEXT NOT NULL,
    kind           TEXT NOT NULL,
    region         TEXT NOT NULL,
    door           TEXT NOT NULL,
    via_sdk        INTEGER NOT NULL,
    attribution    TEXT NOT NULL,
    status_code    INTEGER NOT NULL,
    parse_status   TEXT NOT NULL,
    quantities     TEXT NOT NULL,
    total_tokens   INTEGER NOT NULL,
    cost           INTEGER NOT NULL CHECK (cost >= 0),
    stated_cost    INTEGER,
    price_label    TEXT NOT NULL,
    latency_ms     INTEGER NOT NULL,
    first_byte_ms  INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    wallet_markup  INTEGER,
    wallet_debit   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, created_at, id)
) STRICT, WITHOUT ROWID;
-- SQLite appends to an ascending index without a search, for rows come in the
-- order of time. The index is read backwards.
CREATE INDEX usage_row_sub_account ON usage_row (sub_account_id, created_at, id)
    WHERE sub_account_id <> '';

-- A page of usage with filters takes its rows out of one entry of these for
-- each provider and status that the filters leave: see store/usage_filter.go.
CREATE INDEX usage_row_provider ON usage_row (client_id, provider, parse_status, created_at, id);
CREATE INDEX usage_row_shown ON usage_row
    (sub_account_id, (CASE WHEN slug <> '' THEN author ELSE provider END), parse_status, created_at, id)
    WHERE sub_account_id <> '';

-- held is what all instances together hold of a counter: the sum of its slices,
-- none counted below 0.
CREATE TABLE spend (
    client_id    TEXT NOT NULL,
    scope        TEXT NOT NULL,
    scope_id     TEXT NOT NULL,
    period       TEXT NOT NULL,
    period_start INTEGER NOT NULL,
    settled      INTEGER NOT NULL,
    held         INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, scope, scope_id, period, period_start)
) STRICT, WITHOUT ROWID;

-- What each instance last said of itself, in JSON. It is for people: nothing is
-- decided by it.
CREATE TABLE instance (
    id      TEXT PRIMARY KEY CHECK (id <> ''),
    seen_at INTEGER NOT NULL,
    about   TEXT NOT NULL
) STRICT;

CREATE TABLE spool_progress (
    instance    TEXT PRIMARY KEY CHECK (instance <> ''),
    segment     INTEGER NOT NULL,
    byte_offset INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

-- One row for each client that has usage. Who changes its rollup pages or deletes
-- its rows locks it first. Rows before pruned_before, a whole day, are deleted or
-- about to be. pruned_cost is the cost of what was deleted so far.
CREATE TABLE usage_head (
    client_id     TEXT PRIMARY KEY CHECK (client_id <> ''),
    revision      INTEGER NOT NULL,
    pruned_before INTEGER NOT NULL,
    pruned_cost   INTEGER NOT NULL
) STRICT;

-- Sums of the calls of an hour or a day, many in one page: store/stats/page.go
-- has the format. sub_account_id is '' for all of a client. The page of the
-- dimension '' is the root page. It holds the small dimensions; a larger one has
-- up to 32 pages of its own.
CREATE TABLE rollup (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    grain          TEXT NOT NULL,
    dimension      TEXT NOT NULL,
    start          INTEGER NOT NULL,
    part           INTEGER NOT NULL,
    data           BLOB NOT NULL,
    PRIMARY KEY (client_id, sub_account_id, grain, dimension, start, part)
) STRICT;
-- Pages by their age, for pruning. The expression keeps queries that know the
-- whole key on the primary key: to a planner without figures this index looks
-- as good, and many pages share their start.
CREATE INDEX rollup_old ON rollup (client_id, (start + 0));

-- What a batch of rows adds to the rollups of an hour and of its day, until it
-- is merged into the pages: a root page. id is random.
CREATE TABLE rollup_delta (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    hour           INTEGER NOT NULL,
    id             TEXT NOT NULL,
    data           BLOB NOT NULL,
    PRIMARY KEY (client_id, sub_account_id, hour, id)
) STRICT;

-- Calls of an organization (scope client) and of each of its sub-accounts, by
-- hour and class of latency: sums over the usage rows. Percentiles are estimated
-- from the classes.
CREATE TABLE latency_histogram (
    client_id     TEXT NOT NULL,
    scope         TEXT NOT NULL,
    scope_id      TEXT NOT NULL,
    hour          INTEGER NOT NULL,
    latency_class INTEGER NOT NULL,
    requests      INTEGER NOT NULL,
    errors        INTEGER NOT NULL,
    total_tokens  INTEGER NOT NULL,
    cost          INTEGER NOT NULL,
    latency_ms    INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, hour, latency_class)
) STRICT, WITHOUT ROWID;

-- A budget of a client over the period total is its balance: the sum of its
-- balance entries.
CREATE TABLE budget (
    client_id TEXT NOT NULL,
    scope     TEXT NOT NULL,
    scope_id  TEXT NOT NULL,
    period    TEXT NOT NULL,
    amount    INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period)
) STRICT, WITHOUT ROWID;

-- What each owner (operator, organization or sub_account) has set for a target.
-- budget has the smallest of them, which is the one that binds; a row there
-- without one here is the organization's. Balances are in budget alone.
CREATE TABLE owned_budget (
    client_id TEXT NOT NULL,
    scope     TEXT NOT NULL,
    scope_id  TEXT NOT NULL,
    period    TEXT NOT NULL,
    owner     TEXT NOT NULL,
    amount    INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, owner)
) STRICT, WITHOUT ROWID;

-- Rate limits that were set, each owner's. number names the bucket of a limit: it
-- is the control version of the change that made it. burst 0 is as much as amount,
-- which is nano-USD or whole.
CREATE TABLE rate_limit (
    client_id   TEXT NOT NULL,
    scope       TEXT NOT NULL,
    scope_id    TEXT NOT NULL,
    match       TEXT NOT NULL,
    unit        TEXT NOT NULL,
    time_window TEXT NOT NULL,
    owner       TEXT NOT NULL,
    amount      INTEGER NOT NULL CHECK (amount > 0),
    burst       INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, match, unit, time_window, owner)
) STRICT, WITHOUT ROWID;

-- Budgets and rate limits with counters of their own, which have the scope rule
-- in spend and slice and number/value for a scope_id. number counts up within a
-- client. unit is that of a rate limit, '' a budget's; money is in nano-USD.
-- alerts is a JSON list of percentages, '' the usual ones. Calls from before counted_since do not count.
CREATE TABLE rule (
    client_id     TEXT NOT NULL,
    number        INTEGER NOT NULL,
    scope         TEXT NOT NULL,
    scope_id      TEXT NOT NULL,
    period        TEXT NOT NULL,
    match_text    TEXT NOT NULL,
    owner         TEXT NOT NULL,
    unit          TEXT NOT NULL,
    mode          TEXT NOT NULL,
    alerts        TEXT NOT NULL,
    amount        INTEGER NOT NULL,
    counted_since INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    PRIMARY KEY (client_id, number),
    UNIQUE (client_id, scope, scope_id, period, match_text, unit, owner)
) STRICT, WITHOUT ROWID;

-- One row for each client. Who books rows has it alone, and who changes rules
-- too, so that no row is counted by a rule twice or not at all. version is that
-- of the last change.
CREATE TABLE rule_head (
    client_id TEXT PRIMARY KEY CHECK (client_id <> ''),
    version   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE balance_entry (
    id        TEXT PRIMARY KEY CHECK (id <> ''),
    client_id TEXT NOT NULL,
    at        INTEGER NOT NULL,
    amount    INTEGER NOT NULL CHECK (amount <> 0),
    note      TEXT NOT NULL
) STRICT;
CREATE INDEX balance_entry_newest ON balance_entry (client_id, at DESC, id DESC);

-- What one instance holds of a counter, below 0 where calls cost more than
-- was reserved for them. seq and amount are of the last change that the
-- instance asked for: one that comes again is not made twice. A slice is only changed by who has locked the row of
-- spend, so that every transaction takes the two in the same order.
CREATE TABLE slice (
    client_id    TEXT NOT NULL,
    scope        TEXT NOT NULL,
    scope_id     TEXT NOT NULL,
    period       TEXT NOT NULL,
    period_start INTEGER NOT NULL,
    instance     TEXT NOT NULL CHECK (instance <> ''),
    granted      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    amount       INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, period_start, instance)
) STRICT, WITHOUT ROWID;
CREATE INDEX slice_instance ON slice (instance);

-- An instance raises beat as long as it lives. silent is for how long, in µs,
-- others have seen beat unchanged, each by its own clock: no instant that one
-- clock has written is compared with another's.
CREATE TABLE slice_holder (
    instance TEXT PRIMARY KEY CHECK (instance <> ''),
    beat     INTEGER NOT NULL,
    silent   INTEGER NOT NULL
) STRICT;

-- A row is a part of a budget that was used up, once for each period and
-- audience: operator, or organization where it has an alert_target; of a rule once
-- for each period and value.
-- claimed_until is when another instance may deliver it, the largest integer
-- once it is delivered.
CREATE TABLE alert (
    audience      TEXT NOT NULL,
    client_id     TEXT NOT NULL,
    scope         TEXT NOT NULL,
    scope_id      TEXT NOT NULL,
    period        TEXT NOT NULL,
    period_start  INTEGER NOT NULL,
    rule          INTEGER NOT NULL DEFAULT 0,
    value         TEXT NOT NULL DEFAULT '',
    match_text    TEXT NOT NULL DEFAULT '',
    percent       INTEGER NOT NULL,
    amount        INTEGER NOT NULL,
    settled       INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    tries         INTEGER NOT NULL,
    PRIMARY KEY (audience, client_id, scope, scope_id, period, period_start, rule, value, percent)
) STRICT;
CREATE INDEX alert_due ON alert (audience, claimed_until);

-- Where an organization wants its alerts. The key of their signature is the
-- secret alerts/{client_id}.
CREATE TABLE alert_target (
    client_id   TEXT PRIMARY KEY REFERENCES client (id),
    webhook_url TEXT NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

-- A job is made by a call and has the id and the instant of its usage row.
-- next_poll is also the lease of who polls it, pause how far it moves with
-- the next one. reserve is held of the budgets in
-- holds and rules, a JSON list of numbers, while it is pending.
CREATE TABLE async_job (
    id               TEXT NOT NULL CHECK (id <> ''),
    client_id        TEXT NOT NULL,
    key_id           TEXT NOT NULL,
    sub_account_id   TEXT NOT NULL,
    task_id          TEXT NOT NULL,
    provider         TEXT NOT NULL,
    model            TEXT NOT NULL,
    slug             TEXT NOT NULL,
    author           TEXT NOT NULL,
    kind             TEXT NOT NULL,
    protocol         TEXT NOT NULL,
    credential       TEXT NOT NULL,
    price            TEXT NOT NULL,
    attribution      TEXT NOT NULL,
    holds            INTEGER NOT NULL,
    rules            TEXT NOT NULL,
    quantities       TEXT NOT NULL,
    status           TEXT NOT NULL,
    reason           TEXT NOT NULL,
    provisional_cost INTEGER NOT NULL CHECK (provisional_cost >= 0),
    final_cost       INTEGER NOT NULL CHECK (final_cost >= 0),
    reserve          INTEGER NOT NULL CHECK (reserve >= 0),
    created_at       INTEGER NOT NULL,
    deadline         INTEGER NOT NULL,
    finalized_at     INTEGER NOT NULL,
    next_poll        INTEGER NOT NULL,
    pause            INTEGER NOT NULL,
    PRIMARY KEY (client_id, created_at, id),
    UNIQUE (client_id, task_id, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX async_job_key ON async_job (client_id, key_id, created_at DESC, id DESC);
CREATE INDEX async_job_sub_account ON async_job (sub_account_id, created_at DESC, id DESC)
    WHERE sub_account_id <> '';
CREATE INDEX async_job_due ON async_job (next_poll) WHERE status = 'pending';
CREATE INDEX async_job_pending ON async_job (client_id) WHERE status = 'pending';

-- The records of one transaction for one client, in the order in which they
-- were made: canonical JSON, one a line, compressed. A batch never changes.
CREATE TABLE evidence_batch (
    id      TEXT PRIMARY KEY CHECK (id <> ''),
    records BLOB NOT NULL
) STRICT;

-- Batches that are not in their client's chain yet. first_at and last_at are
-- the least and the greatest instant of their records.
CREATE TABLE evidence_pending (
    batch_id  TEXT PRIMARY KEY,
    client_id TEXT NOT NULL CHECK (client_id <> ''),
    records   INTEGER NOT NULL CHECK (records > 0),
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far a client's chain goes. It moves only from from_seq and from_hash,
-- which is what keeps two sequencers from forking it. pruned is the number up
-- to which records are gone; days before covered_from may lack records, for
-- they were pruned or are older than the chain.
CREATE TABLE evidence_head (
    client_id    TEXT PRIMARY KEY CHECK (client_id <> ''),
    seq          INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    from_seq     INTEGER NOT NULL,
    from_hash    BLOB NOT NULL,
    pruned       INTEGER NOT NULL DEFAULT 0,
    covered_from INTEGER NOT NULL DEFAULT 0,
    export_until INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Where in the chain a batch lies: its records have the numbers first_seq to
-- last_seq, and prev is the hash before the first of them.
CREATE TABLE evidence_chunk (
    client_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    prev      BLOB NOT NULL,
    hash      BLOB NOT NULL,
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    batch_id  TEXT NOT NULL,
    PRIMARY KEY (client_id, first_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_chunk_time ON evidence_chunk (client_id, last_at);

-- What was the end of the chain up to which it was pruned, signed, for ever.
CREATE TABLE evidence_anchor (
    client_id TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    note      TEXT NOT NULL,
    cutoff    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (client_id, seq)
) STRICT, WITHOUT ROWID;

-- The keys that signed heads, in their order. statement is by which the key
-- before handed over, empty where none did.
CREATE TABLE evidence_key (
    n         INTEGER PRIMARY KEY CHECK (n > 0),
    vkey      TEXT NOT NULL UNIQUE,
    statement TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;

-- Which instance extends the chains, so that the others need not try.
CREATE TABLE evidence_lease (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    holder     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO evidence_lease (id, holder, expires_at) VALUES (1, '', 0);

-- Texts that are encrypted under the master key. name is bound into the value:
-- moved to another name it does not open. key_id says which master key opens
-- it.
CREATE TABLE secret (
    name       TEXT PRIMARY KEY CHECK (name <> ''),
    key_id     TEXT NOT NULL,
    value      BLOB NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- How an organization bills its end customers. Its processor's key is the
-- secret processor/{client_id}; generation counts the keys it has had.
-- enabled_at is when it was last enabled.
CREATE TABLE processor_config (
    client_id  TEXT PRIMARY KEY REFERENCES client (id),
    enabled    INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    enabled_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE processor_mapping (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    customer_id    TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (client_id, sub_account_id),
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
) STRICT, WITHOUT ROWID;

-- What was billed to a sub-account and is less than a micro-USD, in
-- 1e-17 USD: the next event takes it along.
CREATE TABLE processor_carry (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    rest           INTEGER NOT NULL CHECK (rest >= 0),
    PRIMARY KEY (client_id, sub_account_id)
) STRICT, WITHOUT ROWID;

-- One row for each usage row that is billed. customer_id and markup are those
-- of the moment it was queued, value is in micro-USD. A row whose value is 0
-- is carried: the sub-account's next one pays for it.
--
-- unsure_at is when the first of those tries was made whose outcome is not
-- known; 0 where the processor surely has not counted the event. generation is
-- that of the key it was tried with.
CREATE TABLE processor_event (
    client_id       TEXT NOT NULL CHECK (client_id <> ''),
    created_at      INTEGER NOT NULL,
    usage_id        TEXT NOT NULL,
    sub_account_id  TEXT NOT NULL,
    customer_id     TEXT NOT NULL,
    markup          INTEGER NOT NULL,
    value           INTEGER NOT NULL CHECK (value >= 0),
    status          TEXT NOT NULL,
    attempts        INTEGER NOT NULL,
    queued_at       INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    unsure_at       INTEGER NOT NULL,
    generation      INTEGER NOT NULL,
    sent_at         INTEGER NOT NULL,
    last_error      TEXT NOT NULL,
    PRIMARY KEY (client_id, created_at, usage_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX processor_event_status ON processor_event (client_id, status, created_at DESC, usage_id DESC);
CREATE INDEX processor_event_pending ON processor_event (client_id, customer_id, next_attempt_at)
    WHERE status = 'pending';
CREATE INDEX processor_event_sent ON processor_event (client_id, sent_at) WHERE status = 'sent';

-- The processor takes one call at a time for each customer. A row is such a
-- queue: next_at is when its next event is due, the largest integer for never,
-- claimed_until when the instance that sends has to be done.
CREATE TABLE processor_queue (
    client_id     TEXT NOT NULL,
    customer_id   TEXT NOT NULL,
    next_at       INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    holder        TEXT NOT NULL,
    PRIMARY KEY (client_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX processor_queue_due ON processor_queue (next_at);

-- A payment into a prepaid balance that was begun. session_id is the
-- processor's, '' until it has answered; payment_id is what paid it.
CREATE TABLE checkout_order (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    client_id  TEXT NOT NULL REFERENCES client (id),
    amount     INTEGER NOT NULL CHECK (amount > 0),
    status     TEXT NOT NULL,
    session_id TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    paid_at    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX checkout_order_payment ON checkout_order (payment_id) WHERE payment_id <> '';

-- What the exact prices of pruned rows exceed their billing events by, in
-- 1e-17 USD: it is in the carry of the sub-account, or was.
CREATE TABLE pruned_export (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    rest           INTEGER NOT NULL,
    PRIMARY KEY (client_id, sub_account_id)
) STRICT;

-- A sub-account's prepaid balance, in billed dollars. Its counter in spend has the
-- scope sub_account and the period total: settled is what calls were debited and
-- what was taken off by negative entries. credited is the sum of the positive
-- entries, allocated how much of settled was taken off their remaining. While the
-- wallet is enabled there is a budget of that scope and period: credited and
-- credit_line, or less than anything while it is blocked. low_noted and
-- spent_noted say that an alert was noted for the present fall of the balance.
CREATE TABLE wallet (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    enabled        INTEGER NOT NULL,
    blocked        INTEGER NOT NULL,
    credit_line    INTEGER NOT NULL CHECK (credit_line >= 0),
    low_balance    INTEGER,
    on_chargeback  TEXT NOT NULL,
    checkout       INTEGER NOT NULL,
    checkout_min   INTEGER NOT NULL,
    checkout_max   INTEGER NOT NULL,
    credited       INTEGER NOT NULL,
    allocated      INTEGER NOT NULL,
    low_noted      INTEGER NOT NULL,
    spent_noted    INTEGER NOT NULL,
    PRIMARY KEY (client_id, sub_account_id),
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
) STRICT;

-- What changed a wallet beside calls. ref is unique within the wallet, so that
-- nothing is entered twice: x: and an external id, o: and an order's, r: and d: and
-- the id of a refund or dispute, R: and D: and that of one that is reversed, e: and
-- the entry's own id. remaining is what is left of a credit, and the only column
-- that changes. claimed is what a refund or dispute of order_id claims; amount may
-- be less, since all together never take more than the order's amount.
CREATE TABLE wallet_entry (
    id             TEXT PRIMARY KEY CHECK (id <> ''),
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    at             INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    amount         INTEGER NOT NULL,
    remaining      INTEGER NOT NULL CHECK (remaining >= 0),
    expires_at     INTEGER NOT NULL,
    note           TEXT NOT NULL,
    ref            TEXT NOT NULL,
    order_id       TEXT NOT NULL,
    claimed        INTEGER NOT NULL,
    made_by        TEXT NOT NULL,
    UNIQUE (client_id, sub_account_id, ref)
) STRICT;
CREATE INDEX wallet_entry_newest ON wallet_entry (client_id, sub_account_id, at DESC, id DESC);
CREATE INDEX wallet_entry_left ON wallet_entry (client_id, sub_account_id, expires_at) WHERE remaining > 0;
CREATE INDEX wallet_entry_order ON wallet_entry (client_id, sub_account_id, order_id) WHERE order_id <> '';
CREATE INDEX wallet_entry_expiry ON wallet_entry (expires_at) WHERE remaining > 0 AND expires_at > 0;

-- A payment into a wallet that was begun, at the processor of the organization.
-- session_id is the processor's, '' until it has answered; payment_id is what paid
-- it.
CREATE TABLE wallet_order (
    id             TEXT PRIMARY KEY CHECK (id <> ''),
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    amount         INTEGER NOT NULL CHECK (amount > 0),
    status         TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    payment_id     TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    paid_at        INTEGER NOT NULL,
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
) STRICT;
CREATE INDEX wallet_order_open ON wallet_order (client_id, sub_account_id, expires_at) WHERE status = 'open';
CREATE UNIQUE INDEX wallet_order_payment ON wallet_order (client_id, payment_id) WHERE payment_id <> '';

-- What a wallet was debited on a UTC day of booking, calls of earlier days
-- included.
CREATE TABLE wallet_day (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    day            INTEGER NOT NULL,
    amount         INTEGER NOT NULL,
    PRIMARY KEY (client_id, sub_account_id, day)
) STRICT;

-- What the pruned rows of a sub-account had debited its wallet.
CREATE TABLE pruned_debit (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    amount         INTEGER NOT NULL,
    PRIMARY KEY (client_id, sub_account_id)
) STRICT;

-- A provider's bill and how it is read. due_at is when it is read next, claimed_until
-- for how long an instance is at it. outcome is a JSON object, '' before the
-- first comparison; told says which alert was sent last, and on which day.
CREATE TABLE invoice_provider (
    provider      TEXT PRIMARY KEY CHECK (provider <> ''),
    claimed_until INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    succeeded_at  INTEGER NOT NULL,
    failure       TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    told          TEXT NOT NULL
) STRICT;

-- What a provider bills for a UTC day, and the sums of its usage rows. lines and
-- sums are JSON arrays of what package invoice makes; fetched_at and summed_at are 0
-- where there are none. sealed: the sums do not change any more. row_count and cost are
-- of all rows of the day.
CREATE TABLE invoice_day (
    provider   TEXT NOT NULL CHECK (provider <> ''),
    day        TEXT NOT NULL CHECK (day <> ''),
    fetched_at INTEGER NOT NULL,
    digest     TEXT NOT NULL,
    lines      TEXT NOT NULL,
    summed_at  INTEGER NOT NULL,
    sealed     INTEGER NOT NULL,
    row_count  INTEGER NOT NULL,
    cost       INTEGER NOT NULL,
    sums       TEXT NOT NULL,
    PRIMARY KEY (provider, day)
) STRICT;
