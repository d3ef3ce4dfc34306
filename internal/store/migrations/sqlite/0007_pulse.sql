-- +goose Up
-- How an organization (scope client) and each of its sub-accounts fared, by
-- hour and by class of latency: the sums over the usage rows. Percentiles are
-- read out of the classes.
CREATE TABLE pulse (
    client_id     TEXT NOT NULL,
    scope         TEXT NOT NULL,
    scope_id      TEXT NOT NULL,
    hour          INTEGER NOT NULL,
    latency_class INTEGER NOT NULL,
    requests      INTEGER NOT NULL,
    errors        INTEGER NOT NULL,
    total_tokens  INTEGER NOT NULL,
    cost          INTEGER NOT NULL,
    latency_ms    INTEGER NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, hour, latency_class)
) STRICT, WITHOUT ROWID;
