-- +goose Up
-- A page of usage with filters takes its rows out of one entry of these for
-- each provider and status that the filters leave: see store/usage_filter.go.
CREATE INDEX usage_row_provider ON usage_row (client_id, provider, parse_status, created_at, id);
CREATE INDEX usage_row_shown ON usage_row
    (sub_account_id, (CASE WHEN slug <> '' THEN author ELSE provider END), parse_status, created_at, id)
    WHERE sub_account_id <> '';

-- What the exact prices of pruned rows exceed their billing events by, in
-- 1e-17 USD: it is in the carry of the sub-account, or was.
CREATE TABLE pruned_export (
    client_id      TEXT NOT NULL,
    sub_account_id TEXT NOT NULL,
    rest           INTEGER NOT NULL,
    PRIMARY KEY (client_id, sub_account_id)
) STRICT;
