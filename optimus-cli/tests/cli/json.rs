//! The JSON of all commands has one form: times, durations and names.

use std::{collections::BTreeSet, fs, ops::Range, sync::Arc};

use optimus::{TaskState, group};
use optimus_core::{OperationAct, OperationFilter};
use serde_json::{Value, json};

use crate::{
    shards::Holder,
    sources,
    stage::{Filled, Stage, busy, send},
    statistics::{DOING, PROCESS, attend},
};

/// Fields whose values users write.
const OF_USERS: [&str; 4] = ["arguments", "headers", "result", "position"];
/// Numbers that are no counts and no times: cores, a part of 1, tasks per second.
const FRACTIONS: [&str; 4] = ["cpu", "part", "rate_s", "failed_part"];
/// Names of things that have another name: the right one is behind it.
const NAMES: [(&str, &str); 6] = [
    ("fp", "fingerprint"),
    ("obstacles", "waits_for"),
    ("paused_by", "pause.by"),
    ("paused_because", "pause.why"),
    ("paused_why", "pause.why"),
    ("because", "why"),
];
/// The instants of this century in ms.
const CENTURY_MS: Range<i64> = 946_684_800_000..4_102_444_800_000;

/// Looks at all fields of an object, and adds what breaks a rule.
fn look(path: &str, value: &Value, broken: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some((_, right)) = NAMES.iter().find(|(wrong, _)| wrong == name) {
                    broken.insert(format!("{path}.{name} has the name {right} elsewhere"));
                }
                if !OF_USERS.contains(&name.as_str()) {
                    look_at_field(&format!("{path}.{name}"), name, value, broken);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| look(path, value, broken)),
        _ => {}
    }
}

fn look_at_field(path: &str, name: &str, value: &Value, broken: &mut BTreeSet<String>) {
    let (is_ms, is_time) = (name.ends_with("_ms"), name.ends_with("_ms") || name.ends_with("_us"));
    let each = value.as_array().map_or_else(|| vec![value], |values| values.iter().collect());
    for value in each {
        match value {
            Value::Number(number) if number.is_f64() && !FRACTIONS.contains(&name) => {
                broken.insert(format!("{path} is no whole number: {number}"));
            }
            Value::Number(number)
                if !is_ms && number.as_i64().is_some_and(|ms| CENTURY_MS.contains(&ms)) =>
            {
                broken.insert(format!("{path} is an instant, and does not end in _ms: {number}"));
            }
            Value::String(text) if is_time => {
                broken.insert(format!("{path} is no number: {text:?}"));
            }
            Value::String(text) if is_instant(text) => {
                broken.insert(format!("{path} is an instant as text: {text:?}"));
            }
            Value::Object(fields) if fields.contains_key("nanos") => {
                broken.insert(format!("{path} is a duration as an object"));
            }
            Value::Bool(_) if name == "pause" => {
                broken.insert(format!("{path} says yes or no; that is `paused`"));
            }
            Value::String(_) | Value::Object(_) if name == "paused" => {
                broken.insert(format!("{path} says more than yes or no; that is `pause`"));
            }
            value => look(path, value, broken),
        }
    }
}

/// Returns whether a text is such as `2026-11-28T07:30:00Z`.
fn is_instant(text: &str) -> bool {
    let digits = |at: Range<usize>| {
        text.get(at).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has = |at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    digits(0..4) && has(4, b'-') && digits(5..7) && has(10, b'T') && has(13, b':')
}

#[test]
fn what_breaks_a_rule_is_found() {
    let wrong = json!({
        "at": "2026-11-28T07:30:00.1Z", "since": 1_795_000_000_000_i64, "wait_ms": 1.5, "ok_ms": 7,
        "took": { "secs": 1, "nanos": 0 }, "paused": "by ann", "run_ms": "5", "rate_s": 0.1,
        "rows": [{ "fp": "x", "arguments": { "at": "2026-11-28T07:30:00Z" } }],
    });
    let mut broken = BTreeSet::new();
    look("", &wrong, &mut broken);
    assert_eq!(broken.len(), 7, "{broken:#?}");
}

/// Returns commands that show all that is there, and then those that change it.
fn commands(tasks: &Filled, [worker, group, running]: [&str; 3]) -> Vec<String> {
    let Filled { dead, fatal, retry, success, delayed, ready, blocked } = tasks;
    let lines = format!(
        "queue list|queue show mail|queue pause mail|queue show mail|queue list|queue resume mail
        task list mail|task list mail --state success --state cancelled|task show {dead}
        task show {success}|task show {running}|task explain {blocked}|task explain {delayed}
        dead list|dead fingerprints|dead export|worker list|worker show {worker}
        process list|process show {PROCESS}|process quiet {PROCESS}|process slots {PROCESS} 1
        process resume {PROCESS}|process stop {PROCESS}|stats|stats --by time|history list mail
        history show mail|history keep mail|lane list mail|lane width mail user-7 2
        limit list|limit set mail queue --rate 1/h|limit set mail limit:x --max-working 5
        limit list|limit remove mail limit:x|limit pause mail task:send|limit list
        limit resume mail task:send|limit remove mail queue|schedule list|schedule show digest
        schedule run-now digest|schedule history digest|schedule pause digest
        schedule show digest|schedule list|schedule resume digest|schedule remove digest
        shard list|shard show orders|shard pause orders 1|shard show orders
        shard resume orders 1|shard restart orders|shard count orders 3|source list
        source show rows|source pause rows|source list|source show rows|source resume rows
        source scan rows|source slices rows 3|dispenser list
        dispenser show review|dispenser open review|dispenser assigned review
        dispenser assignees review|dispenser release review carol|group list mail
        group show {group}|flow show {blocked}|audit list|search {ready}|search o-17
        doctor|task submit mail send --biz-id o-18|search o-18|task run-now {retry}
        task retry {dead}|task cancel {ready}|task delete {fatal}
        dead retry --task send|task cancel --state delayed|op undo OP|dead delete --task other
        op list|op show OP|op follow OP|COUNT|op show OP|op confirm OP|COUNT|op cancel OP
        group cancel {group}|flow cancel {blocked}|lane pause mail user-7|lane list mail
        lane resume mail user-7
        lane cancel mail user-7|history stop mail|history remove mail
        queue clear mail --state ready|namespace list|queue pause none|queue resume none
        queue forget none|task explain {retry}"
    );
    lines.split(['|', '\n']).map(|line| line.trim().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn times_durations_and_names_have_one_form_in_the_json_of_all_commands() {
    let stage = Arc::new(Stage::new().await);
    stage.optimus(&["history", "keep", "mail"]).ended(0);
    let tasks = stage.fill().await;
    stage.furnish().await;
    Holder::of_orders(&stage).await.fails_a_shard().await;
    sources::rows(&stage).await;
    let [logs] = stage.ended(["log: copied 42 files"]).await;
    let pair = group(["a", "b"].map(|how| send(how.to_owned()).lane("user-7")));
    let pair = stage.client.submit_flow(pair).await.unwrap().id().to_string();
    let (running, worker) = busy(&stage).await;
    attend(&stage, DOING).await;
    let (mut broken, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let id = stage.inspector().workers("mail").await.unwrap()[0].id.to_string();
    let mut lines = commands(&tasks, [&id, &pair, &running.to_string()]);
    lines.push(format!("task show {logs}"));
    let operations = stage.client.operations();
    for line in lines {
        if line == "COUNT" {
            let (act, all) = (OperationAct::Cancel, OperationFilter::of(TaskState::Ready));
            operations.count(act, all, "ann".to_owned()).await.unwrap();
            continue;
        }
        let op = operations.list(1).await.unwrap();
        let op = op.first().map_or_else(String::new, |operation| operation.id.clone());
        let words: Vec<&str> =
            line.split(' ').map(|word| if word == "OP" { &*op } else { word }).collect();
        let ran = stage.optimus(&[&words[..], &["--json", "--yes"]].concat());
        assert!(!matches!(ran.code, 1 | 2 | 101), "{line}: {ran:?}");
        for object in ran.json() {
            look(&line, &object, &mut broken);
            seen.insert(line.split(' ').take(2).collect::<Vec<_>>().join(" "));
        }
    }
    worker.abort();
    assert!(broken.is_empty(), "{broken:#?}");
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CLI.md");
    let reference = fs::read_to_string(reference).unwrap();
    let documented = reference.lines().filter_map(|line| line.strip_prefix("### optimus "));
    let unseen: Vec<_> = documented.filter(|verb| !seen.contains(*verb)).collect();
    assert!(unseen.is_empty(), "no JSON of them was looked at: {unseen:?}");
}
