//! Tests of GET, SET and similar commands.

use crate::support::transcript;

#[tokio::test]
async fn a_value_is_kept_byte_for_byte() {
    transcript(&[
        ("GET k", "nil"),
        ("SET k v", "+OK"),
        ("GET k", "\"v\""),
        ("STRLEN k", "1"),
        ("SET k \"\"", "+OK"),
        ("GET k", "\"\""),
        ("EXISTS k", "1"),
        ("MGET k none", "[\"\" nil]"),
    ])
    .await;
}

#[tokio::test]
async fn mset_replaces_values_of_any_type_and_their_expiries() {
    transcript(&[
        ("SET k 1 PX 5000", "+OK"),
        ("RPUSH l a", "1"),
        ("MSET k 2 l 3 k 4", "+OK"),
        ("MGET k l", "[\"4\" \"3\"]"),
        ("PTTL k", "-1"),
        ("MSET k 1 l", "!ERR wrong number of arguments for 'mset' command"),
    ])
    .await;
}

#[tokio::test]
async fn set_obeys_its_conditions() {
    transcript(&[
        ("SET k 1 XX", "nil"),
        ("SET k 1 NX", "+OK"),
        ("SET k 2 NX", "nil"),
        ("SET k 2 NX GET", "\"1\""),
        ("SET k 2 XX GET", "\"1\""),
        ("GET k", "\"2\""),
        ("SET k 3 NX XX", "!ERR syntax error"),
    ])
    .await;
}

#[tokio::test]
async fn set_removes_an_expiry_unless_keepttl_is_given() {
    transcript(&[
        ("SET k 1 PX 5000", "+OK"),
        ("SET k 2 KEEPTTL", "+OK"),
        ("PTTL k", "5000"),
        ("SET k 3", "+OK"),
        ("PTTL k", "-1"),
        ("SET k 4 EX 2", "+OK"),
        ("PTTL k", "2000"),
        ("SET k 5 PXAT 1000500", "+OK"),
        ("PTTL k", "500"),
        ("SET k 6 PXAT 1", "+OK"),
        ("EXISTS k", "0"),
        ("SET k 7 EX 0", "!ERR invalid expire time in 'set' command"),
    ])
    .await;
}

#[tokio::test]
async fn increments_stay_within_64_bits() {
    transcript(&[
        ("INCR n", "1"),
        ("INCRBY n -5", "-4"),
        ("SET n 9223372036854775807", "+OK"),
        ("INCR n", "!ERR increment or decrement would overflow"),
        ("SET n 1.5", "+OK"),
        ("INCR n", "!ERR value is not an integer or out of range"),
    ])
    .await;
}
