//! The allowed dependencies between the crates of Optimus, and the one place that uses Redis.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::files::{File, root};
use crate::{Finding, hold, none};

/// The crates of Optimus, each with the crates that it may depend on. A crate that is not in this
/// table is refused, so that a new crate is a deliberate decision.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("optimus-tasks-macros", &[]),
    ("optimus-tasks-embedded", &[]),
    ("optimus-tasks-core", &["optimus-tasks-embedded"]),
    ("optimus-tasks-metrics", &[]),
    ("optimus-tasks-otel", &["optimus-tasks-core"]),
    ("optimus-tasks-worker", &["optimus-tasks-core", "optimus-tasks-metrics"]),
    ("optimus-tasks-dispenser", &["optimus-tasks-core"]),
    ("optimus-tasks-sql", &["optimus-tasks-core"]),
    ("optimus-tasks-console", &["optimus-tasks-core"]),
    ("optimus-tasks-fsck", &["optimus-tasks-core"]),
    (
        "optimus-tasks-cli",
        &[
            "optimus-tasks-console",
            "optimus-tasks-core",
            "optimus-tasks-fsck",
            "optimus-tasks-metrics",
        ],
    ),
    ("optimus-transactions", &[]),
    (
        "optimus-tasks",
        &[
            "optimus-tasks-core",
            "optimus-tasks-embedded",
            "optimus-tasks-macros",
            "optimus-tasks-otel",
            "optimus-tasks-worker",
        ],
    ),
    ("optimus-testkit", &[]),
    (
        "optimus-bench",
        &["optimus-tasks", "optimus-tasks-core", "optimus-testkit", "optimus-tasks-worker"],
    ),
    ("optimus-fuzz", &["optimus-tasks-core", "optimus-tasks-embedded"]),
    ("optimus-soak", &["optimus-tasks", "optimus-testkit"]),
    ("optimus-journeys", &[]),
    ("optimus-transitions", &[]),
    ("optimus-tidy", &[]),
    (
        "optimus-simulation",
        &[
            "optimus-tasks-core",
            "optimus-tasks-embedded",
            "optimus-tasks-fsck",
            "optimus-testkit",
            "optimus-tasks-worker",
        ],
    ),
    ("xtask", &["optimus-testkit"]),
];

/// An example uses only the crates that users have.
const EXAMPLES_KNOW: &[&str] =
    &["optimus-tasks", "optimus-tasks-console", "optimus-tasks-dispenser", "optimus-tasks-sql"];

const KNOW_REDIS: [&str; 8] = [
    "optimus-bench",
    "optimus-tasks-core",
    "optimus-tasks-embedded",
    "optimus-fuzz",
    "optimus-simulation",
    "optimus-soak",
    "optimus-testkit",
    "xtask",
];

/// The places that may use `redis::` in addition to test code.
const DOORS: [&str; 8] = [
    "benches/",
    "tests/fuzz/",
    "optimus-core/src/broker/",
    "optimus-embedded/",
    "tests/simulation/",
    "tests/soak/",
    "tests/kit/src/",
    "xtask/",
];

fn named_redis(file: &File) -> Vec<Finding> {
    let free = file.is_test() || DOORS.iter().any(|door| file.path.starts_with(door));
    let lines = file.code.iter().enumerate().filter(|_| file.is_rust() && !free);
    lines
        .filter(|(_, line)| !line.test && names_crate(&line.code, "redis"))
        .map(|(index, line)| file.at(index, line.code.trim()))
        .collect()
}

/// The files that may call the user's subscriber. They call it on the runtime of handlers or in the
/// task that submits, with a guard, or on the log's thread.
const SPEAKERS: [&str; 5] = [
    "optimus-core/src/client/submit_log.rs",
    "optimus-core/src/log.rs",
    "optimus-worker/src/decide_outcome.rs",
    "optimus-worker/src/outcome_log.rs",
    "optimus-worker/src/user_code.rs",
];

fn called_subscriber(file: &File) -> Vec<Finding> {
    let role = ["optimus-core/src/", "optimus-worker/src/"];
    let watched = role.iter().any(|folder| file.path.starts_with(folder))
        && !file.is_test()
        && !SPEAKERS.contains(&file.path.as_str());
    let events = ["error!(", "warn!(", "info!(", "debug!(", "trace!(", "event!(", "enabled!("];
    let says = |code: &str| events.iter().any(|event| code.contains(&format!("tracing::{event}")));
    let lines = file.code.iter().enumerate().filter(|_| watched);
    lines
        .filter(|(_, line)| !line.test && says(&line.code))
        .map(|(index, line)| file.at(index, line.code.trim()))
        .collect()
}

/// Returns whether a path in the line begins with the crate.
fn names_crate(code: &str, name: &str) -> bool {
    let starts_path = |before: &str| {
        let before = before.strip_suffix("::").unwrap_or(before);
        before.chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || "_:>".contains(c)))
    };
    let path = format!("{name}::");
    code.match_indices(&path).any(|(at, _)| starts_path(&code[..at]))
        || code.trim_start().trim_start_matches("pub ").starts_with(&format!("use {name};"))
}

/// Returns the dependencies that the table does not allow, from packages as `cargo metadata`
/// describes them. Dependencies that only tests have are ignored.
fn strange_edges(packages: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let name = text(package, "name");
        let manifest = Path::new(text(package, "manifest_path"));
        let in_examples = manifest.ancestors().any(|folder| folder.ends_with("examples"));
        let row = MAY_KNOW.iter().find(|(known, _)| *known == name).map(|(_, may)| *may);
        let Some(may_know) = row.or(in_examples.then_some(EXAMPLES_KNOW)) else {
            findings.push(format!("{name} is not in the table of tests/tidy/edges.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let needed = text(dependency, "name");
            let for_tests = dependency["kind"] == "dev";
            let ours = needed == "xtask" || needed.split('-').next() == Some("optimus");
            let strange_of_ours = ours && !may_know.contains(&needed);
            let strange_redis = needed == "redis" && !KNOW_REDIS.contains(&name);
            if !for_tests && (strange_of_ours || strange_redis) {
                findings.push(format!("{name} depends on {needed}"));
            }
        }
    }
    findings
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("cargo metadata keeps its format")
}

fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = cargo.current_dir(root()).output().expect("cargo runs this test");
    let complaint = String::from_utf8_lossy(&output.stderr);
    let metadata: Value = serde_json::from_slice(&output.stdout).expect(&complaint);
    metadata["packages"].as_array().expect("cargo metadata keeps its format").clone()
}

#[test]
fn only_the_broker_names_redis() {
    hold("add a method to the broker, and call that method", named_redis);
}

#[test]
fn only_the_log_and_the_executor_call_the_subscriber() {
    hold(
        "log the event through `log_event!`, because a subscriber may block or panic",
        called_subscriber,
    );
}

#[test]
fn no_crate_depends_on_another_that_it_should_not() {
    let remedy = "move the code to a crate that may know both, or argue for the edge in \
                  ARCHITECTURE.md and add it to the table";
    none(remedy, strange_edges(&packages()));
}

#[test]
fn redis_outside_the_broker_is_found() {
    let found = |path: &str, text: &str| named_redis(&File::new(path, text)).len();
    assert_eq!(found("optimus-worker/src/a.rs", "use redis::Client;\nlet x: ::redis::Value;"), 2);
    assert_eq!(found("optimus-core/src/a.rs", "pub use redis;\nf(redis::cmd(\"GET\"))"), 2);
    assert_eq!(found("optimus-core/src/broker/a.rs", "use redis::Client;"), 0);
    assert_eq!(found("optimus-embedded/tests/a.rs", "use redis::Client;"), 0);
    assert_eq!(
        found("optimus/src/a.rs", "// redis::Client\nuse crate::redis::A; my_redis::b()"),
        0
    );
}

#[test]
fn an_event_on_a_thread_of_a_role_is_found() {
    let found = |path: &str, text: &str| called_subscriber(&File::new(path, text)).len();
    assert_eq!(found("optimus-worker/src/a.rs", "tracing::warn!(id, \"lost\");"), 1);
    assert_eq!(found("optimus-worker/src/a.rs", "log_event!(log, WARN, id, \"lost\");"), 0);
    assert_eq!(found("optimus-worker/src/outcome_log.rs", "tracing::warn!(\"lost\");"), 0);
    assert_eq!(found("tests/journeys/tests/a.rs", "tracing::warn!(\"lost\");"), 0);
}

#[test]
fn an_edge_that_the_table_does_not_allow_is_found() {
    let package = |name: &str, folder: &str, needs: &[(&str, Value)]| {
        let needs: Vec<Value> = needs
            .iter()
            .map(|(name, kind)| serde_json::json!({ "name": name, "kind": kind }))
            .collect();
        let manifest = format!("{folder}/Cargo.toml");
        serde_json::json!({ "name": name, "manifest_path": manifest, "dependencies": needs })
    };
    let dev = || Value::from("dev");
    let found = strange_edges(&[
        package(
            "optimus-tasks-core",
            "optimus-tasks-core",
            &[("optimus-tasks-worker", Value::Null)],
        ),
        package(
            "optimus-tasks-worker",
            "optimus-tasks-worker",
            &[("redis", Value::Null), ("redis", dev())],
        ),
        package(
            "optimus-tasks-macros",
            "optimus-tasks-macros",
            &[("syn", Value::Null), ("optimus-tasks", dev())],
        ),
        package("shop", "examples/shop", &[("optimus-tasks", Value::Null)]),
        package("optimus-new", "optimus-new", &[]),
    ]);
    let expected = [
        "optimus-tasks-core depends on optimus-tasks-worker",
        "optimus-tasks-worker depends on redis",
        "optimus-new is not in the table of tests/tidy/edges.rs",
    ];
    assert_eq!(found, expected);
}
