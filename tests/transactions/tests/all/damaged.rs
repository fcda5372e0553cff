//! Rows that no program of ours has written: a damaged row is put aside, and holds nothing up.

use std::fmt::Write as _;

use optimus_core::Uuid;
use optimus_sql::{lag, list_parked};
use optimus_testkit::eventually;
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    databases::TestDb,
    setup::{SOON, Seen, Setup},
};

/// A row whose header names an unknown value of a field, which the error repeats.
fn row_with(value: &str) -> String {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let body = format!("{{}}\n{{\"t\":\"note\",\"l\":\"{value}\"}}\nnull");
    let mut hex = String::new();
    for byte in body.bytes() {
        write!(hex, "{byte:02x}").unwrap();
    }
    format!("INSERT INTO optimus_outbox (queue, id, body) VALUES ('default', '{id}', HEX{hex}END)")
}

async fn a_damaged_row_holds_nothing_up<DB: TestDb>(setup: Setup<DB>, insert: String) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    setup.commit(1).await;
    seen.has(1).await;
    DB::run_text(&mut setup.pool.acquire().await.unwrap(), insert).await.unwrap();
    // An operator looks at any time.
    lag(&setup.pool).await.unwrap();
    setup.commit(2).await;
    seen.has(2).await;
    let parked = list_parked(&setup.pool, 0).await.unwrap();
    assert_eq!(parked.len(), 1);
    assert!(parked[0].error.len() < 5_000 && !parked[0].error.contains('\0'), "{parked:?}");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_row_with_a_nul_holds_nothing_up_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let insert = row_with("\\u0000").replace("HEX", "'\\x").replace("END", "'");
    a_damaged_row_holds_nothing_up(setup, insert).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_row_with_a_long_value_holds_nothing_up_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    let insert = row_with(&"x".repeat(70_000)).replace("HEX", "x'").replace("END", "'");
    a_damaged_row_holds_nothing_up(setup, insert).await;
}

/// A row whose time is out of any range.
const NO_TIME: &str = "INSERT INTO optimus_outbox (queue, id, body, at_ms) VALUES ('default', \
    '01890a5d-ac96-774b-bcce-b302099a8057', 'no call', -9223372036854775808)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_wrong_time_holds_nothing_up_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    a_damaged_row_holds_nothing_up(setup, NO_TIME.to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_wrong_time_holds_nothing_up_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    a_damaged_row_holds_nothing_up(setup, NO_TIME.to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_wrong_time_holds_nothing_up_on_sqlite() {
    let setup = Setup::<Sqlite>::start().await;
    a_damaged_row_holds_nothing_up(setup, NO_TIME.to_owned()).await;
}

/// Rows that a program may have written, with values at the limits.
fn odd_rows() -> Vec<(String, String)> {
    let max = u64::MAX;
    vec![
        (format!("{{\"in\":{max}}}"), "{\"t\":\"note\"}".to_owned()),
        (format!("{{\"at\":{}}}", i64::MIN), "{\"t\":\"note\"}".to_owned()),
        ("{\"at\":8210266876799999}".to_owned(), "{\"t\":\"note\"}".to_owned()),
        ("{\"at\":-8210266876799999}".to_owned(), "{\"t\":\"note\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"\\u0000\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"\"}".to_owned()),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"e\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"to\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"k\":{max}}}")),
        ("{}".to_owned(), "{\"t\":\"note\",\"z\":\"a\"}".to_owned()),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"z\":\"a\",\"k\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"z\":\"b\",\"w\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"rm\":{max}}}")),
        ("{}".to_owned(), "{\"t\":\"note\",\"p\":127}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"n\":\"\"}".to_owned()),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"n\":\"{}\"}}", "n".repeat(70_000))),
        ("{}".to_owned(), "{\"t\":\"note\",\"b\":\"fixed:1:NaN\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"g\":[\"1:0:0:x\"]}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"gc\":4294967295,\"g\":[\"1:1:1:x\"]}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"x\":true}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"ga\":\"x\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"gr\":\"x\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"m\":0,\"r\":4294967295}".to_owned()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_odd_values_hold_nothing_up() {
    let setup = Setup::<Sqlite>::start().await;
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    for (at, (first, header)) in odd_rows().iter().enumerate() {
        // A queue of its own, except that two rows have one biz id.
        let queue = format!("odd-{}", if at == 10 { 9 } else { at });
        let body = format!("{first}\n{header}\nnull");
        let id = Uuid::from_u128(0x4000_8000_0000_0000_0000 + at as u128);
        let sql = "INSERT INTO optimus_outbox (queue, id, body) VALUES (?, ?, ?)";
        let insert = sqlx::query(sql).bind(queue).bind(id.to_string()).bind(body.into_bytes());
        insert.execute(&setup.pool).await.unwrap();
        let shown = &header[..header.len().min(80)];
        let is_gone = async || lag(&setup.pool).await.unwrap().rows == 0;
        eventually(&format!("a relay is done with {first} {shown}"), SOON, is_gone).await;
    }
    relay.stop().await;
}
