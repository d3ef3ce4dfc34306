-- +goose Up
-- Pages by their age, for pruning. The expression keeps queries that know the
-- whole key on the primary key: to a planner without figures this index looks
-- as good, and many pages share their start.
DROP INDEX rollup_age;
CREATE INDEX rollup_old ON rollup (client_id, (start + 0));

-- What batches of rows add to the rollups of an hour, and of its day, until it
-- is put into the pages: a root page each. id is random.
CREATE TABLE rollup_delta (
    client_id      TEXT COLLATE "C" NOT NULL,
    sub_account_id TEXT COLLATE "C" NOT NULL,
    hour           BIGINT NOT NULL,
    id             TEXT COLLATE "C" NOT NULL,
    data           BYTEA NOT NULL,
    PRIMARY KEY (client_id, sub_account_id, hour, id)
);
