//! Payloads come back byte for byte: no script reads them as JSON.

use std::slice;

use optimus_core::{BLOB_BYTES_MIN, Submission, TaskId, TaskRecord};
use redis::cmd;

use crate::{
    acts::Grants,
    bench::{Bench, START},
    jobs::{job_of, ready},
    situations::text_of,
};

/// The keys of a plain submit, in the order of its naming block.
const SUBMIT_KEYS: [&str; 4] = ["tasks", "ready", "wake", "ledger:c1"];

/// Claims the only task of the queue and returns its record.
async fn claimed_payload(bench: &Bench, id: &TaskId) -> TaskRecord {
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 1).await;
    assert_eq!(claimed.ids(), slice::from_ref(id));
    TaskRecord::decode(claimed.grants[0].record.clone()).expect("a record")
}

async fn through(bench: &Bench, payload: &str) {
    bench.restore(&crate::dump::Dump::new()).await;
    let id = bench.add(0, job_of(payload)).await;
    let record = claimed_payload(bench, &id).await;
    assert_eq!(std::str::from_utf8(&record.payload), Ok(payload));
}

async fn json_comes_back_unchanged(bench: Bench) {
    let characters: String = (' '..='\u{2ff}').filter(|c| !"\"\\".contains(*c)).collect();
    for payload in [
        "[]",
        "{}",
        "null",
        "\"\"",
        "9007199254740993",
        "-18446744073709551616",
        "1e400",
        "1.0",
        "0.1000000000000000055511151231257827",
        r#"{"a":[],"a":{},"b":9223372036854775807}"#,
        r#""\u0000\ud800\n\\""#,
        "{ \"spaced\" :\t[ 1 ,\n2 ] }",
        "\"line\u{2028}☃ \u{10ffff}\"",
        &format!("\"{characters}\""),
    ] {
        through(&bench, payload).await;
    }
}

async fn deep_json_comes_back_unchanged(bench: Bench) {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    through(&bench, &deep(100)).await;
    // The nesting is deeper than the JSON library of either side can read.
    let deeper = deep(5_000).into_bytes();
    assert_eq!(raw_submit(&bench, &deeper).await.payload, deeper);
}

/// Submits bytes that no JSON encoder writes. A plain submit of one task needs no includes.
async fn raw_submit(bench: &Bench, payload: &[u8]) -> TaskRecord {
    bench.restore(&crate::dump::Dump::new()).await;
    let id = TaskId::new(bench.queue.clone());
    let mut call = cmd("EVAL");
    call.arg(text_of("submit")).arg(SUBMIT_KEYS.len());
    for name in SUBMIT_KEYS {
        call.arg(bench.key(name));
    }
    call.arg(START).arg(1).arg(1).arg(START).arg("");
    let record = [b"{\"t\":\"job\"}\n", payload].concat();
    let answer: String = bench.raw(call.arg(id.stored()).arg(record)).await;
    assert_eq!(answer, "OK");
    claimed_payload(bench, &id).await
}

async fn bytes_that_are_not_text_come_back_unchanged(bench: Bench) {
    let every: Vec<u8> = (0..=255).collect();
    let reversed: Vec<u8> = (0..=255).rev().collect();
    for payload in [&every[..], &reversed, b"", b"\0", b"\n\n", b"\r\n", b"\xff\xfe{}\n"] {
        assert_eq!(raw_submit(&bench, payload).await.payload, payload);
    }
}

async fn a_large_payload_is_stored_apart_from_its_record(bench: Bench) {
    // The quotes count: a payload at the limit stays in its record, and one with one more byte does
    // not.
    for (bytes, apart) in [(BLOB_BYTES_MIN, false), (BLOB_BYTES_MIN + 1, true), (900_000, true)] {
        bench.restore(&crate::dump::Dump::new()).await;
        let payload = format!("\"{}\"", "x".repeat(bytes - 2));
        let id = bench.add(0, job_of(payload.clone())).await;
        let record = claimed_payload(&bench, &id).await;
        let blob = bench.now().blobs(&bench.queue, &[&id]).await.unwrap().remove(0);
        assert_eq!(record.has_blob, apart);
        if apart {
            assert_eq!((record.payload, blob), (Vec::new(), Some(payload.into_bytes())));
        } else {
            assert_eq!((record.payload, blob), (payload.into_bytes(), None));
        }
    }
}

async fn large_and_small_payloads_of_one_call_stay_with_their_tasks(bench: Bench) {
    let payloads = [("a", 20_000), ("b", 1), ("c", 30_000), ("d", 2), ("e", 40_000)]
        .map(|(completion, count)| format!("\"{}\"", completion.repeat(count)));
    let tasks: Vec<_> = payloads.iter().map(|payload| ready(job_of(payload.as_str()))).collect();
    bench.submit(0, &tasks).await;
    let ids: Vec<&TaskId> = tasks.iter().map(Submission::id).collect();
    let blobs = bench.now().blobs(&bench.queue, &ids).await.unwrap();
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 8).await;
    for ((grant, blob), payload) in claimed.grants.iter().zip(blobs).zip(payloads) {
        let record = TaskRecord::decode(grant.record.clone()).unwrap();
        assert_eq!(blob.unwrap_or(record.payload), payload.into_bytes());
    }
}

async fn a_name_and_a_biz_id_come_back_unchanged(bench: Bench) {
    let biz = "a\"b\\c\n☃\u{0}";
    let id = bench.add(0, job_of("1").biz_id(biz)).await;
    let record = claimed_payload(&bench, &id).await;
    assert_eq!(record.biz_id.as_deref(), Some(biz));
}

on_both![
    json_comes_back_unchanged,
    deep_json_comes_back_unchanged,
    bytes_that_are_not_text_come_back_unchanged,
    a_large_payload_is_stored_apart_from_its_record,
    large_and_small_payloads_of_one_call_stay_with_their_tasks,
    a_name_and_a_biz_id_come_back_unchanged,
];
