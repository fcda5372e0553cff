//! Pipelines and transactions, through the interface of the redis crate.

use optimus_embedded::{Clock, Connection, Store};
use redis::{AsyncCommands, ErrorKind, RedisResult, ServerErrorKind, Value};

fn connection() -> Connection {
    Store::new(Clock::system()).connection()
}

#[tokio::test]
async fn a_pipeline_answers_in_order() {
    let mut connection = connection();
    let replies: (String, i64, Option<String>) = redis::pipe()
        .set("a", 1)
        .cmd("INCR")
        .arg("a")
        .get("none")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(replies, ("OK".to_owned(), 2, None));
}

#[tokio::test]
async fn an_error_in_a_pipeline_does_not_stop_it_and_is_reported() {
    let mut connection = connection();
    let reply: RedisResult<Value> =
        redis::pipe().set("a", "x").incr("a", 1).set("b", 2).query_async(&mut connection).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
    assert_eq!(connection.get::<_, i64>("b").await.unwrap(), 2);
}

#[tokio::test]
async fn errors_of_a_pipeline_can_be_read_one_by_one() {
    let mut connection = connection();
    let replies: Vec<RedisResult<Value>> = redis::pipe()
        .ignore_errors()
        .set("a", "x")
        .incr("a", 1)
        .get("a")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert!(replies[0].is_ok());
    assert_eq!(replies[1].as_ref().unwrap_err().code(), Some("ERR"));
    assert_eq!(replies[2], Ok(Value::BulkString(b"x".to_vec())));
}

#[tokio::test]
async fn a_transaction_runs_as_a_whole() {
    let mut connection = connection();
    let replies: (i64, i64) = redis::pipe()
        .atomic()
        .set("a", 1)
        .ignore()
        .incr("a", 1)
        .incr("a", 1)
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(replies, (2, 3));
}

#[tokio::test]
async fn a_transaction_with_a_command_that_cannot_be_queued_does_nothing() {
    let mut connection = connection();
    let reply: RedisResult<Value> =
        redis::pipe().atomic().set("a", 1).cmd("GET").query_async(&mut connection).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ExecAbort));
    assert!(!connection.exists::<_, bool>("a").await.unwrap());
}

#[tokio::test]
async fn a_command_that_fails_in_a_transaction_undoes_nothing() {
    let mut connection = connection();
    let reply: RedisResult<Value> = redis::pipe()
        .atomic()
        .set("a", "x")
        .incr("a", 1)
        .set("b", 2)
        .query_async(&mut connection)
        .await;
    assert!(reply.is_err());
    assert_eq!(connection.get::<_, i64>("b").await.unwrap(), 2);
}

#[tokio::test]
async fn a_blocking_command_does_not_wait_in_a_transaction() {
    let mut connection = connection();
    let replies: (Option<(String, String)>, i64) = redis::pipe()
        .atomic()
        .cmd("BLPOP")
        .arg("l")
        .arg(0)
        .cmd("RPUSH")
        .arg("l")
        .arg("x")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(replies, (None, 1));
}

#[tokio::test]
async fn a_loop_over_commands_lets_other_tasks_run() {
    let mut connection = connection();
    let other = tokio::spawn(async {});
    while !other.is_finished() {
        connection.exists::<_, bool>("a").await.unwrap();
    }
}
