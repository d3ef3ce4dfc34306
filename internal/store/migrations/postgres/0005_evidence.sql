-- +goose Up
-- The records of one transaction for one client, in the order in which they
-- were made: canonical JSON, one a line, compressed. A batch never changes.
CREATE TABLE evidence_batch (
    id      TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    records BYTEA NOT NULL
);

-- Batches that are not in their client's chain yet. first_at and last_at are
-- the least and the greatest instant of their records.
CREATE TABLE evidence_pending (
    batch_id  TEXT COLLATE "C" PRIMARY KEY,
    client_id TEXT COLLATE "C" NOT NULL CHECK (client_id <> ''),
    records   BIGINT NOT NULL CHECK (records > 0),
    first_at  BIGINT NOT NULL,
    last_at   BIGINT NOT NULL
);

-- How far a client's chain goes. It moves only from from_seq and from_hash,
-- which is what keeps two sequencers from forking it. pruned is the number up
-- to which records are gone; days before covered_from may lack records, for
-- they were pruned or are older than the chain.
CREATE TABLE evidence_head (
    client_id    TEXT COLLATE "C" PRIMARY KEY CHECK (client_id <> ''),
    seq          BIGINT NOT NULL,
    hash         BYTEA NOT NULL,
    from_seq     BIGINT NOT NULL,
    from_hash    BYTEA NOT NULL,
    pruned       BIGINT NOT NULL DEFAULT 0,
    covered_from BIGINT NOT NULL DEFAULT 0,
    export_until BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Where in the chain a batch lies: its records have the numbers first_seq to
-- last_seq, and prev is the hash before the first of them.
CREATE TABLE evidence_chunk (
    client_id TEXT COLLATE "C" NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    prev      BYTEA NOT NULL,
    hash      BYTEA NOT NULL,
    first_at  BIGINT NOT NULL,
    last_at   BIGINT NOT NULL,
    batch_id  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (client_id, first_seq)
);
CREATE INDEX evidence_chunk_time ON evidence_chunk (client_id, last_at);

-- What was the end of the chain up to which it was pruned, signed, for ever.
CREATE TABLE evidence_anchor (
    client_id TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    hash      BYTEA NOT NULL,
    note      TEXT NOT NULL,
    cutoff    BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    PRIMARY KEY (client_id, seq)
);

-- The keys that signed heads, in their order. statement is by which the key
-- before handed over, empty where none did.
CREATE TABLE evidence_key (
    n         BIGINT PRIMARY KEY CHECK (n > 0),
    vkey      TEXT COLLATE "C" NOT NULL UNIQUE,
    statement TEXT NOT NULL,
    at        BIGINT NOT NULL
);

-- Which instance extends the chains, so that the others need not try.
CREATE TABLE evidence_lease (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    holder     TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
INSERT INTO evidence_lease (id, holder, expires_at) VALUES (1, '', 0);

-- The chains of clients that are there already begin now.
INSERT INTO evidence_head (client_id, seq, hash, from_seq, from_hash, covered_from)
SELECT c.id, 0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'), COALESCE((SELECT MAX(u.created_at) + 1 FROM usage_row u WHERE u.client_id = c.id), 0)
FROM (SELECT id FROM client UNION SELECT client_id FROM usage_row) c;
