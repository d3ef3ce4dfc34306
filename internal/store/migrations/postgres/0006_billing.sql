-- +goose Up
-- Texts that are encrypted under the master key. name is bound into the value:
-- moved to another name it does not open. key_id says which master key opens
-- it.
CREATE TABLE secret (
    name       TEXT COLLATE "C" PRIMARY KEY CHECK (name <> ''),
    key_id     TEXT COLLATE "C" NOT NULL,
    value      BYTEA NOT NULL,
    updated_at BIGINT NOT NULL
);

-- How an organization bills its end customers. Its processor's key is the
-- secret processor/{client_id}; generation counts the keys it has had.
-- enabled_at is when it was last enabled.
CREATE TABLE processor_config (
    client_id  TEXT COLLATE "C" PRIMARY KEY REFERENCES client (id),
    enabled    BOOLEAN NOT NULL,
    generation BIGINT NOT NULL,
    enabled_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE processor_mapping (
    client_id      TEXT COLLATE "C" NOT NULL,
    sub_account_id TEXT COLLATE "C" NOT NULL,
    customer_id    TEXT COLLATE "C" NOT NULL,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (client_id, sub_account_id),
    FOREIGN KEY (client_id, sub_account_id) REFERENCES sub_account (client_id, id)
);

-- What was billed to a sub-account and is less than a micro-USD, in
-- 1e-17 USD: the next event takes it along.
CREATE TABLE processor_carry (
    client_id      TEXT COLLATE "C" NOT NULL,
    sub_account_id TEXT COLLATE "C" NOT NULL,
    rest           BIGINT NOT NULL CHECK (rest >= 0),
    PRIMARY KEY (client_id, sub_account_id)
);

-- One row for each usage row that is billed. customer_id and markup are those
-- of the moment it was queued, value is in micro-USD. A row whose value is 0
-- is carried: the sub-account's next one pays for it.
--
-- unsure_at is when the first of those tries was made whose outcome is not
-- known; 0 where the processor surely has not counted the event. generation is
-- that of the key it was tried with.
CREATE TABLE processor_event (
    client_id       TEXT COLLATE "C" NOT NULL CHECK (client_id <> ''),
    created_at      BIGINT NOT NULL,
    usage_id        TEXT COLLATE "C" NOT NULL,
    sub_account_id  TEXT COLLATE "C" NOT NULL,
    customer_id     TEXT COLLATE "C" NOT NULL,
    markup          BIGINT NOT NULL,
    value           BIGINT NOT NULL CHECK (value >= 0),
    status          TEXT COLLATE "C" NOT NULL,
    attempts        BIGINT NOT NULL,
    queued_at       BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    unsure_at       BIGINT NOT NULL,
    generation      BIGINT NOT NULL,
    sent_at         BIGINT NOT NULL,
    last_error      TEXT NOT NULL,
    PRIMARY KEY (client_id, created_at, usage_id)
);
CREATE INDEX processor_event_status ON processor_event (client_id, status, created_at DESC, usage_id DESC);
CREATE INDEX processor_event_pending ON processor_event (client_id, customer_id, next_attempt_at)
    WHERE status = 'pending';
CREATE INDEX processor_event_sent ON processor_event (client_id, sent_at) WHERE status = 'sent';

-- The processor takes one call at a time for each customer. A row is such a
-- lane: next_at is when its next event is due, the largest integer for never,
-- claimed_until when the instance that sends has to be done.
CREATE TABLE processor_lane (
    client_id     TEXT COLLATE "C" NOT NULL,
    customer_id   TEXT COLLATE "C" NOT NULL,
    next_at       BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    holder        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (client_id, customer_id)
);
CREATE INDEX processor_lane_due ON processor_lane (next_at);

-- A payment into a prepaid balance that was begun. session_id is the
-- processor's, '' until it has answered; payment_id is what paid it.
CREATE TABLE checkout_order (
    id         TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    client_id  TEXT COLLATE "C" NOT NULL REFERENCES client (id),
    amount     BIGINT NOT NULL CHECK (amount > 0),
    status     TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    payment_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    paid_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX checkout_order_payment ON checkout_order (payment_id) WHERE payment_id <> '';
