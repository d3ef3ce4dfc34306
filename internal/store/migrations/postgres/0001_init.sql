-- +goose Up
CREATE TABLE control (
    id      BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL
);
INSERT INTO control (id, version) VALUES (1, 1);

CREATE TABLE client (
    id                TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    name              TEXT NOT NULL,
    routing_policy    TEXT NOT NULL,
    billing           TEXT NOT NULL,
    max_keys          BIGINT NOT NULL,
    limit_rps         BIGINT,
    limit_burst       BIGINT,
    limit_concurrency BIGINT,
    ceiling           TEXT NOT NULL,
    created_at        BIGINT NOT NULL
);

CREATE TABLE sub_account (
    id         TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    client_id  TEXT COLLATE "C" NOT NULL REFERENCES client (id),
    name       TEXT NOT NULL,
    slug       TEXT COLLATE "C" NOT NULL,
    status     TEXT NOT NULL,
    markup     BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (client_id, slug),
    UNIQUE (client_id, id)
);

-- expires_at is the largest integer for a key that never expires, so that
-- counting a client's live keys is one range of api_key_live.
CREATE TABLE api_key (
    id                TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    client_id         TEXT COLLATE "C" NOT NULL REFERENCES client (id),
    sub_account_id    TEXT COLLATE "C",
    digest            BYTEA NOT NULL UNIQUE,
    prefix            TEXT NOT NULL,
    status            TEXT NOT NULL,
    scopes            TEXT NOT NULL,
    entitlements      TEXT NOT NULL,
    denies            TEXT NOT NULL,
    backing           TEXT NOT NULL,
    limit_rps         BIGINT,
    limit_burst       BIGINT,
    limit_concurrency BIGINT,
    created_at        BIGINT NOT NULL,
    last_used_at      BIGINT NOT NULL,
    expires_at        BIGINT NOT NULL,
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
);
CREATE INDEX api_key_newest ON api_key (client_id, created_at DESC, id DESC);
CREATE INDEX api_key_live ON api_key (client_id, expires_at) WHERE status = 'active';

CREATE TABLE branding (
    client_id        TEXT COLLATE "C" PRIMARY KEY REFERENCES client (id),
    portal_slug      TEXT COLLATE "C" NOT NULL UNIQUE,
    product_name     TEXT NOT NULL,
    logo_url         TEXT,
    accent_color     TEXT,
    allow_self_issue BOOLEAN NOT NULL,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL
);

CREATE TABLE audit (
    id          TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    at          BIGINT NOT NULL,
    client_id   TEXT COLLATE "C" NOT NULL,
    action      TEXT NOT NULL,
    actor       TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id   TEXT COLLATE "C" NOT NULL,
    change      TEXT,
    request_id  TEXT COLLATE "C" NOT NULL
);

-- No foreign keys here: a call that was made is booked whatever has become of
-- its key, and each reference would cost a look-up per row.
--
-- created_at is the instant in the id, so that the id alone decides whether a
-- row is there already. With the client in front, the primary key is also the
-- order in which usage is read: an insertion costs one tree.
CREATE TABLE usage_row (
    id             TEXT COLLATE "C" NOT NULL,
    client_id      TEXT COLLATE "C" NOT NULL CHECK (client_id <> ''),
    key_id         TEXT COLLATE "C" NOT NULL,
    sub_account_id TEXT COLLATE "C" NOT NULL,
    provider       TEXT NOT NULL,
    model          TEXT NOT NULL,
    slug           TEXT COLLATE "C" NOT NULL,
    author         TEXT NOT NULL,
    kind           TEXT NOT NULL,
    region         TEXT NOT NULL,
    door           TEXT NOT NULL,
    via_sdk        BOOLEAN NOT NULL,
    attribution    JSONB NOT NULL,
    status_code    BIGINT NOT NULL,
    parse_status   TEXT NOT NULL,
    quantities     TEXT NOT NULL,
    total_tokens   BIGINT NOT NULL,
    cost           BIGINT NOT NULL CHECK (cost >= 0),
    price_label    TEXT NOT NULL,
    latency_ms     BIGINT NOT NULL,
    first_byte_ms  BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (client_id, created_at, id)
);
CREATE INDEX usage_row_sub_account ON usage_row (sub_account_id, created_at DESC, id DESC)
    WHERE sub_account_id <> '';

-- The fill factor leaves room to update a counter in its own page.
CREATE TABLE spend (
    client_id    TEXT COLLATE "C" NOT NULL,
    scope        TEXT COLLATE "C" NOT NULL,
    scope_id     TEXT COLLATE "C" NOT NULL,
    period       TEXT COLLATE "C" NOT NULL,
    period_start BIGINT NOT NULL,
    settled      BIGINT NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, period_start)
) WITH (fillfactor = 50);

CREATE TABLE spool_progress (
    instance    TEXT COLLATE "C" PRIMARY KEY CHECK (instance <> ''),
    segment     BIGINT NOT NULL,
    byte_offset BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);
