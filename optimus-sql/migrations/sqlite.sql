-- The tables of Optimus in SQLite, 3.35 or newer. Safe to run again.

-- Calls that wait for the relay. AUTOINCREMENT uses no number twice, also after a delete.
CREATE TABLE IF NOT EXISTS optimus_outbox (
    seq integer PRIMARY KEY AUTOINCREMENT,
    queue text NOT NULL,
    id text NOT NULL,
    body blob NOT NULL,
    at_ms integer NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 AS integer)),
    parked_ms integer,
    error text
);

-- The batches that are noted and perhaps not deleted yet, in the row `outbox`. The row `namespace`
-- has in `noted` the namespace to which the outbox belongs.
CREATE TABLE IF NOT EXISTS optimus_stream (
    name text PRIMARY KEY,
    epoch text NOT NULL,
    number integer NOT NULL,
    noted text NOT NULL
) WITHOUT ROWID;

-- What `once` has applied, with its output.
CREATE TABLE IF NOT EXISTS optimus_once (
    queue text NOT NULL,
    task text NOT NULL,
    part text NOT NULL,
    fence integer NOT NULL,
    output text,
    at_ms integer NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000.0 AS integer)),
    PRIMARY KEY (queue, task, part)
) WITHOUT ROWID;

-- The highest fence that each guard has seen, and up to which markers were purged. How far each
-- shard has come.
CREATE TABLE IF NOT EXISTS optimus_fence (
    name text PRIMARY KEY,
    fence integer NOT NULL,
    position text
) WITHOUT ROWID;
