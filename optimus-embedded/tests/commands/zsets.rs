//! Tests of the commands of sorted sets.

use crate::support::transcript;

#[tokio::test]
async fn members_are_in_the_order_of_score_then_bytes() {
    transcript(&[
        ("ZADD z 2 b 1 c 2 a inf last -inf first", "5"),
        ("ZRANGE z 0 -1", "[\"first\" \"c\" \"a\" \"b\" \"last\"]"),
        ("ZRANGE z 0 0 WITHSCORES", "[\"first\" \"-inf\"]"),
        ("ZREVRANGE z 0 1 WITHSCORES", "[\"last\" \"inf\" \"b\" \"2\"]"),
        ("ZRANGE z 0 1 REV", "[\"last\" \"b\"]"),
        ("ZRANK z a", "2"),
        ("ZRANK z x", "nil"),
        ("ZSCORE z c", "\"1\""),
        ("ZMSCORE z c x", "[\"1\" nil]"),
        ("ZCARD z", "5"),
        ("ZREM z c x", "1"),
        ("ZPOPMIN z", "[\"first\" \"-inf\"]"),
        ("ZPOPMIN z 9", "[\"a\" \"2\" \"b\" \"2\" \"last\" \"inf\"]"),
        ("EXISTS z", "0"),
    ])
    .await;
}

#[tokio::test]
async fn zadd_obeys_its_conditions() {
    transcript(&[
        ("ZADD z XX 1 a", "0"),
        ("EXISTS z", "0"),
        ("ZADD z NX 1 a", "1"),
        ("ZADD z NX 2 a", "0"),
        ("ZADD z GT CH 0 a", "0"),
        ("ZADD z LT CH 0.5 a", "1"),
        ("ZADD z CH 0.5 a", "0"),
        ("ZADD z INCR 2 a", "\"2.5\""),
        ("ZADD z NX INCR 2 a", "nil"),
        ("ZINCRBY z -1 a", "\"1.5\""),
        ("ZADD z nan a", "!ERR value is not a valid float"),
        ("ZADD z inf a", "0"),
        ("ZINCRBY z -inf a", "!ERR resulting score is not a number (NaN)"),
        ("ZSCORE z a", "\"inf\""),
    ])
    .await;
}

#[tokio::test]
async fn ranges_by_score_include_their_ends_unless_excluded() {
    transcript(&[
        ("ZADD z 1 a 2 b 3 c 4 d", "4"),
        ("ZRANGEBYSCORE z 2 3", "[\"b\" \"c\"]"),
        ("ZRANGEBYSCORE z (2 +inf WITHSCORES LIMIT 0 1", "[\"c\" \"3\"]"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 -1", "[\"b\" \"c\" \"d\"]"),
        ("ZRANGEBYSCORE z (2 (3", "[]"),
        ("ZRANGEBYSCORE z 3 2", "[]"),
        ("ZRANGE z (4 2 BYSCORE REV", "[\"c\" \"b\"]"),
        ("ZCOUNT z (1 3", "2"),
        ("ZRANGESTORE y z -2 -1 REV", "2"),
        ("ZRANGE y 0 -1 WITHSCORES", "[\"a\" \"1\" \"b\" \"2\"]"),
        ("ZRANGESTORE y none 0 -1", "0"),
        ("EXISTS y", "0"),
        ("ZRANGESTORE y z 0 -1 WITHSCORES", "!ERR syntax error"),
        ("ZCOUNT z a b", "!ERR min or max is not a float"),
        ("ZREMRANGEBYSCORE z -inf (2", "1"),
        ("ZREMRANGEBYRANK z -1 -1", "1"),
        ("ZRANGE z 0 -1", "[\"b\" \"c\"]"),
        ("ZREMRANGEBYRANK z 0 -1", "2"),
        ("EXISTS z", "0"),
    ])
    .await;
}
