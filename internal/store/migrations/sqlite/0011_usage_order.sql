-- +goose Up
-- Rows come in the order of time, and what is added at the end of a tree is
-- added without looking for its place. The index is read backwards.
DROP INDEX usage_row_sub_account;
CREATE INDEX usage_row_sub_account ON usage_row (sub_account_id, created_at, id)
    WHERE sub_account_id <> '';
