-- The tables of Optimus in PostgreSQL, 13 or newer. Safe to run again.

-- Calls that wait for the relay. `xact` comes first, so that a transaction has its number before
-- it draws a `seq`: the relay relies on this.
CREATE TABLE IF NOT EXISTS optimus_outbox (
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    id text NOT NULL,
    body bytea NOT NULL,
    at_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    parked_ms bigint,
    error text
);

-- The batches that are noted and perhaps not deleted yet, in the row `outbox`. The row `namespace`
-- has in `noted` the namespace to which the outbox belongs.
CREATE TABLE IF NOT EXISTS optimus_stream (
    name text PRIMARY KEY,
    epoch text NOT NULL,
    number bigint NOT NULL,
    noted text NOT NULL
);

-- What `once` has applied, with its output.
CREATE TABLE IF NOT EXISTS optimus_once (
    queue text NOT NULL,
    task text NOT NULL,
    part text NOT NULL,
    fence bigint NOT NULL,
    output text,
    at_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    PRIMARY KEY (queue, task, part)
);

-- The highest fence that each guard has seen, and up to which markers were purged. How far each
-- shard has come.
CREATE TABLE IF NOT EXISTS optimus_fence (
    name text PRIMARY KEY,
    fence bigint NOT NULL,
    position text
);
