-- +goose Up
-- One row for each client that has usage. Who changes its rollups or deletes
-- its rows locks it first.
--
-- Rows before rolled_from are not in the rollups yet; it is a whole hour, and
-- 0 once all are. Rows before pruned_before are deleted, or about to be; it is
-- a whole day. pruned_rows and pruned_cost are what was deleted so far.
CREATE TABLE usage_head (
    client_id     TEXT COLLATE "C" PRIMARY KEY CHECK (client_id <> ''),
    revision      BIGINT NOT NULL,
    rolled_from   BIGINT NOT NULL,
    pruned_before BIGINT NOT NULL,
    pruned_rows   BIGINT NOT NULL,
    pruned_cost   BIGINT NOT NULL
);

INSERT INTO usage_head (client_id, revision, rolled_from, pruned_before, pruned_rows, pruned_cost)
SELECT client_id, 0, MAX(created_at) - MAX(created_at) % 3600000000 + 3600000000, 0, 0, 0
FROM usage_row
GROUP BY client_id;

-- What the calls of an hour or a day come to, in pages of many sums:
-- store/rollup_page.go has the format. sub_account_id is '' for all of a
-- client. The page of the dimension '' holds all that is small, the pages 0..31
-- of another one what grew out of it.
CREATE TABLE rollup (
    client_id      TEXT COLLATE "C" NOT NULL,
    sub_account_id TEXT COLLATE "C" NOT NULL,
    grain          TEXT COLLATE "C" NOT NULL,
    dimension      TEXT COLLATE "C" NOT NULL,
    start          BIGINT NOT NULL,
    part           BIGINT NOT NULL,
    data           BYTEA NOT NULL,
    PRIMARY KEY (client_id, sub_account_id, grain, dimension, start, part)
) WITH (fillfactor = 70);
CREATE INDEX rollup_age ON rollup (client_id, start);
