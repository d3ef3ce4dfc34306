-- +goose Up
-- A job is made by a call and has the id and the instant of its usage row.
-- next_poll is also the lease of who polls it, pause how far it moves with
-- the next one. reserve is held of the budgets in holds while it is pending.
CREATE TABLE async_job (
    id               TEXT COLLATE "C" NOT NULL CHECK (id <> ''),
    client_id        TEXT COLLATE "C" NOT NULL,
    key_id           TEXT COLLATE "C" NOT NULL,
    sub_account_id   TEXT COLLATE "C" NOT NULL,
    task_id          TEXT COLLATE "C" NOT NULL,
    provider         TEXT COLLATE "C" NOT NULL,
    model            TEXT COLLATE "C" NOT NULL,
    slug             TEXT COLLATE "C" NOT NULL,
    author           TEXT COLLATE "C" NOT NULL,
    kind             TEXT COLLATE "C" NOT NULL,
    way              TEXT COLLATE "C" NOT NULL,
    credential       TEXT COLLATE "C" NOT NULL,
    price            TEXT NOT NULL,
    attribution      JSONB NOT NULL,
    holds            BIGINT NOT NULL,
    quantities       TEXT NOT NULL,
    status           TEXT COLLATE "C" NOT NULL,
    reason           TEXT COLLATE "C" NOT NULL,
    provisional_cost BIGINT NOT NULL CHECK (provisional_cost >= 0),
    final_cost       BIGINT NOT NULL CHECK (final_cost >= 0),
    reserve          BIGINT NOT NULL CHECK (reserve >= 0),
    created_at       BIGINT NOT NULL,
    deadline         BIGINT NOT NULL,
    finalized_at     BIGINT NOT NULL,
    next_poll        BIGINT NOT NULL,
    pause            BIGINT NOT NULL,
    PRIMARY KEY (client_id, created_at, id),
    UNIQUE (client_id, task_id, provider)
);
CREATE INDEX async_job_key ON async_job (client_id, key_id, created_at DESC, id DESC);
CREATE INDEX async_job_sub_account ON async_job (sub_account_id, created_at DESC, id DESC)
    WHERE sub_account_id <> '';
CREATE INDEX async_job_due ON async_job (next_poll) WHERE status = 'pending';
CREATE INDEX async_job_pending ON async_job (client_id) WHERE status = 'pending';
