-- +goose Up
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

-- The chains of clients that are there already begin now.
INSERT INTO evidence_head (client_id, seq, hash, from_seq, from_hash, covered_from)
SELECT c.id, 0, zeroblob(32), 0, zeroblob(32), COALESCE((SELECT MAX(u.created_at) + 1 FROM usage_row u WHERE u.client_id = c.id), 0)
FROM (SELECT id FROM client UNION SELECT client_id FROM usage_row) c;
