-- +goose Up
CREATE TABLE control (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO control (id, version) VALUES (1, 1);

CREATE TABLE client (
    id                TEXT PRIMARY KEY CHECK (id <> ''),
    name              TEXT NOT NULL,
    routing_policy    TEXT NOT NULL,
    billing           TEXT NOT NULL,
    max_keys          INTEGER NOT NULL,
    limit_rps         INTEGER,
    limit_burst       INTEGER,
    limit_concurrency INTEGER,
    ceiling           TEXT NOT NULL,
    created_at        INTEGER NOT NULL
) STRICT;

CREATE TABLE sub_account (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    client_id  TEXT NOT NULL REFERENCES client (id),
    name       TEXT NOT NULL,
    slug       TEXT NOT NULL,
    status     TEXT NOT NULL,
    markup     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (client_id, slug),
    UNIQUE (client_id, id)
) STRICT;

-- expires_at is the largest integer for a key that never expires, so that
-- counting a client's live keys is one range of api_key_live.
CREATE TABLE api_key (
    id                TEXT PRIMARY KEY CHECK (id <> ''),
    client_id         TEXT NOT NULL REFERENCES client (id),
    sub_account_id    TEXT,
    digest            BLOB NOT NULL UNIQUE,
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
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
) STRICT;
CREATE INDEX api_key_newest ON api_key (client_id, created_at DESC, id DESC);
CREATE INDEX api_key_live ON api_key (client_id, expires_at) WHERE status = 'active';

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

-- No foreign keys here: a call that was made is booked whatever has become of
-- its key, and each reference would cost a look-up per row.
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
    price_label    TEXT NOT NULL,
    latency_ms     INTEGER NOT NULL,
    first_byte_ms  INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (client_id, created_at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_row_sub_account ON usage_row (sub_account_id, created_at DESC, id DESC)
    WHERE sub_account_id <> '';

CREATE TABLE spend (
    client_id    TEXT NOT NULL,
    scope        TEXT NOT NULL,
    scope_id     TEXT NOT NULL,
    period       TEXT NOT NULL,
    period_start INTEGER NOT NULL,
    settled      INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, period_start)
) STRICT, WITHOUT ROWID;

CREATE TABLE spool_progress (
    instance    TEXT PRIMARY KEY CHECK (instance <> ''),
    segment     INTEGER NOT NULL,
    byte_offset INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;
