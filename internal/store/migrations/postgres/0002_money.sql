-- +goose Up
-- What all instances together hold of a counter: the sum of its slices, none
-- counted below 0.
ALTER TABLE spend ADD COLUMN held BIGINT NOT NULL DEFAULT 0;

-- What a client ever spent, for its balance.
INSERT INTO spend (client_id, scope, scope_id, period, period_start, settled)
SELECT client_id, 'client', client_id, 'total', 0, SUM(settled)
FROM spend
WHERE scope = 'client' AND period = 'month'
GROUP BY client_id;

-- A budget of a client over the period total is its balance: the sum of its
-- balance entries.
CREATE TABLE budget (
    client_id TEXT COLLATE "C" NOT NULL,
    scope     TEXT COLLATE "C" NOT NULL,
    scope_id  TEXT COLLATE "C" NOT NULL,
    period    TEXT COLLATE "C" NOT NULL,
    amount    BIGINT NOT NULL,
    revision  BIGINT NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period)
);

CREATE TABLE balance_entry (
    id        TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    client_id TEXT COLLATE "C" NOT NULL,
    at        BIGINT NOT NULL,
    amount    BIGINT NOT NULL CHECK (amount <> 0),
    note      TEXT NOT NULL
);
CREATE INDEX balance_entry_newest ON balance_entry (client_id, at DESC, id DESC);

-- What a client had ever spent when it last became an invoiced one: what it
-- spends while it is does not count against its balance.
ALTER TABLE client ADD COLUMN invoiced_spend BIGINT NOT NULL DEFAULT 0;

-- What one instance holds of a counter, below 0 where calls cost more than
-- was reserved for them. seq and amount are of the last change that the
-- instance asked for: one that comes again is not made twice. A slice is only changed by who has locked the row of
-- spend, so that every transaction takes the two in the same order.
CREATE TABLE slice (
    client_id    TEXT COLLATE "C" NOT NULL,
    scope        TEXT COLLATE "C" NOT NULL,
    scope_id     TEXT COLLATE "C" NOT NULL,
    period       TEXT COLLATE "C" NOT NULL,
    period_start BIGINT NOT NULL,
    instance     TEXT COLLATE "C" NOT NULL CHECK (instance <> ''),
    granted      BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    amount       BIGINT NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, period_start, instance)
);
CREATE INDEX slice_instance ON slice (instance);

-- Until when an instance surely lives: after that its slices are free.
CREATE TABLE slice_holder (
    instance   TEXT COLLATE "C" PRIMARY KEY CHECK (instance <> ''),
    expires_at BIGINT NOT NULL
);

-- A row is a part of a budget that was used up, once for each period.
-- claimed_until is when another instance may deliver it, the largest integer
-- once it is delivered.
CREATE TABLE alert (
    client_id     TEXT COLLATE "C" NOT NULL,
    scope         TEXT COLLATE "C" NOT NULL,
    scope_id      TEXT COLLATE "C" NOT NULL,
    period        TEXT COLLATE "C" NOT NULL,
    period_start  BIGINT NOT NULL,
    percent       BIGINT NOT NULL,
    amount        BIGINT NOT NULL,
    settled       BIGINT NOT NULL,
    at            BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    tries         BIGINT NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, period_start, percent)
);
CREATE INDEX alert_due ON alert (claimed_until);
