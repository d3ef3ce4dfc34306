-- +goose Up
-- One row for each client that has usage. Who changes its rollups or deletes
-- its rows locks it first.
--
-- Rows before rolled_from are not in the rollups yet; it is a whole hour, and
-- 0 once all are. Rows before pruned_before are deleted, or about to be; it is
-- a whole day. pruned_rows and pruned_cost are what was deleted so far.
CREATE TABLE usage_head (
    client_id     TEXT PRIMARY KEY CHECK (client_id <> ''),
    revision      INTEGER NOT NULL,
    rolled_from   INTEGER NOT NULL,
    pruned_before INTEGER NOT NULL,
    pruned_rows   INTEGER NOT NULL,
    pruned_cost   INTEGER NOT NULL
) STRICT;

INSERT INTO usage_head (client_id, revision, rolled_from, pruned_before, pruned_rows, pruned_cost)
SELECT client_id, 0, MAX(created_at) - MAX(created_at) % 3600000000 + 3600000000, 0, 0, 0
FROM usage_row
GROUP BY client_id;

-- What the calls of an hour or a day come to, in pages of many sums:
-- store/rollup_page.go has the format. sub_account_id is '' for all of a
-- client. The page of the dimension '' holds all that is small, the pages 0..31
-- of another one what grew out of it.
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
CREATE INDEX rollup_age ON rollup (client_id, start);
