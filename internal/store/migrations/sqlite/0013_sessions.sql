-- +goose Up
-- Who is signed in to dashboard and portals. digest is the SHA-256 of what the
-- browser holds, kind what the session was opened with: a key, which is
-- api_key_id then.
CREATE TABLE session (
    id           TEXT PRIMARY KEY CHECK (id <> ''),
    digest       BLOB NOT NULL UNIQUE,
    kind         TEXT NOT NULL,
    place        TEXT NOT NULL,
    client_id    TEXT NOT NULL REFERENCES client (id),
    api_key_id   TEXT REFERENCES api_key (id),
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX session_key ON session (api_key_id, created_at, id);
CREATE INDEX session_end ON session (expires_at);

-- Raised whenever sessions are ended. It has a number of its own, so that who
-- signs out makes no instance look up its keys again.
ALTER TABLE control ADD COLUMN session_version INTEGER NOT NULL DEFAULT 1;

-- The keys that customers issued in a portal.
ALTER TABLE api_key ADD COLUMN self_issued INTEGER NOT NULL DEFAULT 0;
