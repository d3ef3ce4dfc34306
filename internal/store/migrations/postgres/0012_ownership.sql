-- +goose Up
-- What each owner (operator, organization or sub_account) has set for a target.
-- budget has the smallest of them, which is the one that binds; a row there
-- without one here is the organization's. Balances are in budget alone.
CREATE TABLE owned_budget (
    client_id TEXT COLLATE "C" NOT NULL,
    scope     TEXT COLLATE "C" NOT NULL,
    scope_id  TEXT COLLATE "C" NOT NULL,
    period    TEXT COLLATE "C" NOT NULL,
    owner     TEXT COLLATE "C" NOT NULL,
    amount    BIGINT NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, period, owner)
);

-- The nearest ancestor that is not revoked, of a key that a key bound to a
-- sub-account has issued.
ALTER TABLE api_key ADD COLUMN issued_by TEXT COLLATE "C";
CREATE INDEX api_key_issued_by ON api_key (issued_by) WHERE issued_by IS NOT NULL;

-- The ancestors that such a key had when it was issued, 1 its issuer. What the
-- key spends counts towards them for good: rows are never changed.
CREATE TABLE key_lineage (
    key_id      TEXT COLLATE "C" NOT NULL,
    generation  BIGINT NOT NULL,
    ancestor_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (key_id, generation)
);
CREATE INDEX key_lineage_ancestor ON key_lineage (ancestor_id);

ALTER TABLE sub_account ADD COLUMN max_keys BIGINT;

-- An instance raises beat as long as it lives. silent is for how long, in µs,
-- others have seen beat unchanged, each by its own clock: no instant that one
-- clock has written is compared with another's. expires_at is for programs of
-- the version before, and never comes.
ALTER TABLE slice_holder ADD COLUMN beat BIGINT NOT NULL DEFAULT 1;
ALTER TABLE slice_holder ADD COLUMN silent BIGINT NOT NULL DEFAULT 0;
