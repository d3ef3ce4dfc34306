-- +goose Up
-- A job is made by a call and has the id and the instant of its usage row.
-- next_poll is also the lease of who polls it, pause how far it moves with
-- the next one. reserve is held of the budgets in holds while it is pending.
CREATE TABLE async_job (
    id               TEXT NOT NULL CHECK (id <> ''),
    client_id        TEXT NOT NULL,
    key_id           TEXT NOT NULL,
    sub_account_id   TEXT NOT NULL,
    task_id          TEXT NOT NULL,
    provider         TEXT NOT NULL,
    model            TEXT NOT NULL,
    slug             TEXT NOT NULL,
    author           TEXT NOT NULL,
    kind             TEXT NOT NULL,
    way              TEXT NOT NULL,
    credential       TEXT NOT NULL,
    price            TEXT NOT NULL,
    attribution      TEXT NOT NULL,
    holds            INTEGER NOT NULL,
    quantities       TEXT NOT NULL,
    status           TEXT NOT NULL,
    reason           TEXT NOT NULL,
    provisional_cost INTEGER NOT NULL CHECK (provisional_cost >= 0),
    final_cost       INTEGER NOT NULL CHECK (final_cost >= 0),
    reserve          INTEGER NOT NULL CHECK (reserve >= 0),
    created_at       INTEGER NOT NULL,
    deadline         INTEGER NOT NULL,
    finalized_at     INTEGER NOT NULL,
    next_poll        INTEGER NOT NULL,
    pause            INTEGER NOT NULL,
    PRIMARY KEY (client_id, created_at, id),
    UNIQUE (client_id, task_id, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX async_job_key ON async_job (client_id, key_id, created_at DESC, id DESC);
CREATE INDEX async_job_sub_account ON async_job (sub_account_id, created_at DESC, id DESC)
    WHERE sub_account_id <> '';
CREATE INDEX async_job_due ON async_job (next_poll) WHERE status = 'pending';
CREATE INDEX async_job_pending ON async_job (client_id) WHERE status = 'pending';
