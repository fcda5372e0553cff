//! Tests of the commands of sets.

use crate::support::transcript;

#[tokio::test]
async fn a_member_is_in_a_set_once() {
    transcript(&[
        ("SADD s a b a", "2"),
        ("SCARD s", "2"),
        ("SISMEMBER s a", "1"),
        ("SMISMEMBER s a x b", "[1 0 1]"),
        ("SMEMBERS s", "[\"a\" \"b\"]"),
        ("SREM s a x", "1"),
        ("SPOP s", "\"b\""),
        ("EXISTS s", "0"),
        ("SPOP s", "nil"),
        ("SPOP s 2", "[]"),
    ])
    .await;
}

#[tokio::test]
async fn popping_more_than_there_is_empties_the_set() {
    transcript(&[
        ("SADD s a", "1"),
        ("SPOP s 0", "[]"),
        ("SPOP s 9", "[\"a\"]"),
        ("EXISTS s", "0"),
    ])
    .await;
}
