-- +goose Up
-- Nothing changes here: PostgreSQL adds to an index that is read forwards as
-- fast as to one that is read backwards.
SELECT 1;
