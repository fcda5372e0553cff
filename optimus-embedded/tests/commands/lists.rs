//! Tests of the commands of lists.

use crate::support::transcript;

#[tokio::test]
async fn both_ends_push_and_pop() {
    transcript(&[
        ("RPUSH l b c", "2"),
        ("LPUSH l a z", "4"),
        ("LRANGE l 0 -1", "[\"z\" \"a\" \"b\" \"c\"]"),
        ("LPOP l", "\"z\""),
        ("RPOP l 2", "[\"c\" \"b\"]"),
        ("LPOP l 0", "[]"),
        ("LPOP l 5", "[\"a\"]"),
        ("LPOP l", "nil"),
        ("LPOP l 1", "nil"),
        ("EXISTS l", "0"),
        ("LPOP l -1", "!ERR value is out of range, must be positive"),
    ])
    .await;
}

#[tokio::test]
async fn positions_count_from_either_end() {
    transcript(&[
        ("RPUSH l a b c d", "4"),
        ("LINDEX l -1", "\"d\""),
        ("LINDEX l 4", "nil"),
        ("LRANGE l -100 1", "[\"a\" \"b\"]"),
        ("LRANGE l 3 2", "[]"),
        ("LPOS l c", "2"),
        ("LPOS l x", "nil"),
        ("LSET l -1 D", "+OK"),
        ("LSET l 9 x", "!ERR index out of range"),
        ("LSET none 0 x", "!ERR no such key"),
        ("LTRIM l 1 -2", "+OK"),
        ("LRANGE l 0 -1", "[\"b\" \"c\"]"),
        ("LTRIM l 5 9", "+OK"),
        ("LLEN l", "0"),
        ("EXISTS l", "0"),
    ])
    .await;
}

#[tokio::test]
async fn removal_counts_from_the_end_that_its_sign_names() {
    transcript(&[
        ("RPUSH l x a x b x", "5"),
        ("LREM l -1 x", "1"),
        ("LRANGE l 0 -1", "[\"x\" \"a\" \"x\" \"b\"]"),
        ("LREM l 1 x", "1"),
        ("LRANGE l 0 -1", "[\"a\" \"x\" \"b\"]"),
        ("LREM l 0 x", "1"),
        ("LREM none 0 x", "0"),
        ("LRANGE l 0 -1", "[\"a\" \"b\"]"),
    ])
    .await;
}
