-- The tables of Optimus in MySQL, 8.0.13 or newer, and MariaDB, 10.6 or newer. Safe to run again.

-- Calls that wait for the relay.
CREATE TABLE IF NOT EXISTS optimus_outbox (
    seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue varchar(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    id varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    body longblob NOT NULL,
    at_ms bigint NOT NULL
        DEFAULT (timestampdiff(MICROSECOND, '1970-01-01 00:00:00', utc_timestamp(3)) DIV 1000),
    parked_ms bigint,
    error text CHARACTER SET utf8mb4
) ENGINE = InnoDB;

-- The batches that are noted and perhaps not deleted yet, in the row `outbox`. The row `namespace`
-- has in `noted` the namespace to which the outbox belongs.
CREATE TABLE IF NOT EXISTS optimus_stream (
    name varchar(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    epoch varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    number bigint NOT NULL,
    noted mediumtext CHARACTER SET ascii COLLATE ascii_bin NOT NULL
) ENGINE = InnoDB;

-- What `once` has applied, with its output.
CREATE TABLE IF NOT EXISTS optimus_once (
    queue varchar(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    task varchar(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    part varchar(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    fence bigint NOT NULL,
    output longtext CHARACTER SET utf8mb4,
    at_ms bigint NOT NULL
        DEFAULT (timestampdiff(MICROSECOND, '1970-01-01 00:00:00', utc_timestamp(3)) DIV 1000),
    PRIMARY KEY (queue, task, part)
) ENGINE = InnoDB;

-- The highest fence that each guard has seen, and up to which markers were purged. How far each
-- shard has come.
CREATE TABLE IF NOT EXISTS optimus_fence (
    name varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    fence bigint NOT NULL,
    position longtext CHARACTER SET utf8mb4
) ENGINE = InnoDB;
