//! Tests of the commands of hashes.

use crate::support::transcript;

#[tokio::test]
async fn fields_are_added_and_removed_and_the_last_removes_the_key() {
    transcript(&[
        ("HSET h a 1 b 2 a 3", "2"),
        ("HGET h a", "\"3\""),
        ("HMGET h a none b", "[\"3\" nil \"2\"]"),
        ("HSETNX h a 4", "0"),
        ("HSETNX h c 4", "1"),
        ("HLEN h", "3"),
        ("HGETALL h", "[\"a\" \"3\" \"b\" \"2\" \"c\" \"4\"]"),
        ("HKEYS h", "[\"a\" \"b\" \"c\"]"),
        ("HVALS h", "[\"3\" \"2\" \"4\"]"),
        ("HEXISTS h a", "1"),
        ("HSTRLEN h a", "1"),
        ("HDEL h a b none", "2"),
        ("HDEL h c", "1"),
        ("EXISTS h", "0"),
        ("HGETALL h", "[]"),
    ])
    .await;
}

#[tokio::test]
async fn a_field_can_be_incremented() {
    transcript(&[
        ("HINCRBY h n 5", "5"),
        ("HINCRBY h n -7", "-2"),
        ("HSET h text x", "1"),
        ("HINCRBY h text 1", "!ERR hash value is not an integer"),
        ("HSET h", "!ERR wrong number of arguments for 'hset' command"),
        ("HSET h a 1 b", "!ERR wrong number of arguments for 'hset' command"),
    ])
    .await;
}

#[tokio::test]
async fn random_fields_are_fields() {
    transcript(&[
        ("HRANDFIELD h", "nil"),
        ("HRANDFIELD h 3", "[]"),
        ("HSET h only 1", "1"),
        ("HRANDFIELD h", "\"only\""),
        ("HRANDFIELD h 3", "[\"only\"]"),
        ("HRANDFIELD h -3", "[\"only\" \"only\" \"only\"]"),
    ])
    .await;
}
