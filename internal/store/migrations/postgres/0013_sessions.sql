-- +goose Up
-- Who is signed in to dashboard and portals. digest is the SHA-256 of what the
-- browser holds, kind what the session was opened with: a key, which is
-- api_key_id then.
CREATE TABLE session (
    id           TEXT COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    digest       BYTEA NOT NULL UNIQUE,
    kind         TEXT COLLATE "C" NOT NULL,
    place        TEXT COLLATE "C" NOT NULL,
    client_id    TEXT COLLATE "C" NOT NULL REFERENCES client (id),
    api_key_id   TEXT COLLATE "C" REFERENCES api_key (id),
    created_at   BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX session_key ON session (api_key_id, created_at, id);
CREATE INDEX session_end ON session (expires_at);

-- Raised whenever sessions are ended. It has a number of its own, so that who
-- signs out makes no instance look up its keys again.
ALTER TABLE control ADD COLUMN session_version BIGINT NOT NULL DEFAULT 1;

-- The keys that customers issued in a portal.
ALTER TABLE api_key ADD COLUMN self_issued BOOLEAN NOT NULL DEFAULT FALSE;
