-- +goose Up
-- How an organization (scope client) and each of its sub-accounts fared, by
-- hour and by class of latency: the sums over the usage rows. Percentiles are
-- read out of the classes.
CREATE TABLE pulse (
    client_id     TEXT COLLATE "C" NOT NULL,
    scope         TEXT COLLATE "C" NOT NULL,
    scope_id      TEXT COLLATE "C" NOT NULL,
    hour          BIGINT NOT NULL,
    latency_class BIGINT NOT NULL,
    requests      BIGINT NOT NULL,
    errors        BIGINT NOT NULL,
    total_tokens  BIGINT NOT NULL,
    cost          BIGINT NOT NULL,
    latency_ms    BIGINT NOT NULL,
    PRIMARY KEY (client_id, scope, scope_id, hour, latency_class)
) WITH (fillfactor = 50);
