//! The facade exports every type that a public signature names.

#![allow(unused_imports, reason = "the imports are the test")]

use std::{fs, path::Path};

use optimus::{
    AttemptError, BACKOFF_MAX, Backoff, BackoffFn, BoxError, Call, Cancel, Client, ClientBuilder,
    Context, Counts, Data, DataKey, DateTime, Due, Durability, ErasedCall, Error, Fatal, Inspector,
    Interrupted, InvalidName, Lane, LaneDetails, LaneFailure, NAMESPACE_DEFAULT, OnLost, PAGE_MAX,
    PRIORITY_MAX, QueueName, Reason, RecordError, Result, Results, Retry, ServerFacts, Snooze,
    Submission, Submit, SubmitAllError, Task, TaskDetails, TaskFn, TaskHandle, TaskId, TaskOptions,
    TaskRecord, TaskResult, TaskState, Utc, Uuid, Value, Worker, WorkerBuilder, WorkerDescription,
    WorkerDetails, WorkerId, task,
};

/// Names that only workers and tools use. The comments give the reasons.
const NOT_FOR_USERS: [&str; 18] = [
    // A worker uses these to run a task and to report its outcome.
    "CallOutput",
    "Ran",
    "RunError",
    "RunOutput",
    "Running",
    "RunningCalls",
    "TaskDefinition",
    "Chain",
    "Control",
    "Lease",
    "Token",
    "TIMEOUT_GRACE",
    "interval",
    // These are the stored form of a task.
    "BLOB_BYTES_MIN",
    "RECORD_VERSION",
    "NAME_BYTES_MAX",
    "validate_name",
    "self",
];

/// Returns the names in the public `pub use` statements of a crate.
fn exported(lib: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(lib);
    let source = fs::read_to_string(path).expect("the crate's root");
    let statements = source.split(';').filter(|statement| !statement.contains("#[doc(hidden)]"));
    let lists =
        statements.filter_map(|statement| statement.split_once("pub use ")).map(|(_, list)| list);
    let word = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let names = lists.flat_map(|list| list.split(word).filter(|name| !name.is_empty()));
    // A path that ends in `::` is the module of the names that follow it.
    let names = names.filter(|name| !name.ends_with("::"));
    names.map(|name| name.rsplit("::").next().expect("a name").to_owned()).collect()
}

#[test]
fn the_facade_exports_all_public_names_of_its_crates() {
    let facade = exported("src/lib.rs");
    assert!(facade.iter().any(|name| name == "TaskHandle"), "{facade:?}");
    for lib in ["../optimus-core/src/lib.rs", "../optimus-worker/src/lib.rs"] {
        let names = exported(lib);
        assert!(names.len() > 1, "{names:?}");
        let missing: Vec<_> = names
            .iter()
            .filter(|name| !facade.contains(name) && !NOT_FOR_USERS.contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "{lib}: the facade lacks {missing:?}");
    }
}
