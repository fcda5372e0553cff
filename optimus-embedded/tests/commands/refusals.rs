//! Commands that are refused, and their errors.

use optimus_embedded::{Clock, Room, Store};

use crate::support::{send, show, transcript, words};

#[tokio::test]
async fn an_unimplemented_command_is_an_error_that_names_it() {
    for (line, what) in [
        ("GETDEL k", "GETDEL"),
        ("MULTI", "MULTI"),
        ("XADD s * f v", "XADD"),
        ("SUBSCRIBE c", "SUBSCRIBE"),
        ("SET k v EXAT 5", "SET EXAT"),
        ("PEXPIRE k 5 NX", "PEXPIRE NX"),
        ("LPOS l e RANK 2", "LPOS RANK"),
        ("HRANDFIELD h 2 WITHVALUES", "HRANDFIELD WITHVALUES"),
        ("ZRANGE z - + BYLEX", "ZRANGE BYLEX"),
        ("SCAN 0 TYPE string", "SCAN TYPE"),
        ("CONFIG SET a b", "CONFIG SET"),
        ("CLIENT KILL x", "CLIENT KILL"),
        ("SCRIPT KILL", "SCRIPT KILL"),
    ] {
        let refusal = format!("!ERR optimus-embedded does not implement '{what}'");
        transcript(&[(line, &refusal)]).await;
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_not_changed() {
    let wrong = "!WRONGTYPE Operation against a key holding the wrong kind of value";
    transcript(&[
        ("RPUSH l 1", "1"),
        ("GET l", wrong),
        ("INCR l", wrong),
        ("HSET l a 1", wrong),
        ("SADD l a", wrong),
        ("ZADD l 1 a", wrong),
        ("MGET l", "[nil]"),
        ("SET l v", "+OK"),
        ("LPUSH l 1", wrong),
        ("BLPOP l 0", wrong),
        ("GET l", "\"v\""),
    ])
    .await;
}

#[tokio::test]
async fn a_full_store_refuses_only_commands_that_need_memory() {
    let store = Store::new(Clock::system());
    let mut connection = store.connection();
    send(&mut connection, &words("RPUSH l a b")).await;
    store.set_room(Room::Full);
    let oom = "!OOM command not allowed when used memory > 'maxmemory'.";
    for line in ["SET k v", "RPUSH l c", "HSET h a 1", "SADD s a", "ZADD z 1 a", "INCR n"] {
        assert_eq!(show(&send(&mut connection, &words(line)).await), oom, "{line}");
    }
    for (line, reply) in [("LPOP l", "\"a\""), ("PEXPIRE l 5000", "1"), ("DEL l", "1")] {
        assert_eq!(show(&send(&mut connection, &words(line)).await), reply, "{line}");
    }
    store.set_room(Room::Free);
    assert_eq!(show(&send(&mut connection, &words("SET k v")).await), "+OK");
}
