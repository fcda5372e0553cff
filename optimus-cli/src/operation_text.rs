//! An operation in words: [`word`], [`tasks`], [`what`].

use chrono::DateTime;
use optimus_core::{
    Operation, OperationAct, Value,
    redact::{REDACTED, is_secret, redact_text},
};

use crate::output::text;

/// Returns the act as the commands call it.
pub(crate) fn word(act: OperationAct) -> &'static str {
    match act {
        OperationAct::Requeue => "requeue",
        OperationAct::Cancel => "cancel",
        OperationAct::Delete => "delete",
        _ => "run-now",
    }
}

/// Describes the tasks of an operation with all of its filter:
/// `dead of mail, task send, error "503", header tenant=acme, older than 1 h`.
pub(crate) fn tasks(operation: &Operation) -> String {
    let json = serde_json::to_value(operation).unwrap_or_default();
    let filter = &json["filter"];
    let each = |name: &str| -> Vec<&str> {
        filter[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let queues = match &each("queues")[..] {
        [] => "all queues".to_owned(),
        queues => queues.join(", "),
    };
    let mut parts = vec![format!("{} of {queues}", each("states").join(", "))];
    let texts = [("task", "task"), ("cause", "cause"), ("fingerprint", "fingerprint")];
    for (name, word) in texts {
        parts.extend(filter[name].as_str().map(|text| format!("{word} {text}")));
    }
    parts.extend(filter["text"].as_str().map(|text| format!("error {text:?}")));
    let header = |header: &&str| match header.split_once('=') {
        // The name says enough to somebody who confirms.
        Some((name, _)) if is_secret(name) => format!("header {name}={REDACTED}"),
        _ => format!("header {header}"),
    };
    parts.extend(each("headers").iter().map(header));
    let older = filter["older_ms"].as_u64().map(std::time::Duration::from_millis);
    parts.extend(older.map(|age| format!("older than {}", text::duration(age))));
    let since = filter["since_ms"].as_i64().and_then(DateTime::from_timestamp_millis);
    parts.extend(since.map(|at| format!("ended since {}", text::at(at))));
    parts.join(", ")
}

/// Describes an operation with all of its filter, and how far it is.
pub(crate) fn what(operation: &Operation) -> String {
    let (act, how_far) = (word(operation.act), operation.text());
    let how_far = how_far.split_once(": ").map_or(&*how_far, |(_, how_far)| how_far);
    format!("{act} {}: {how_far}", tasks(operation))
}

/// Describes an operation for the audit of its confirmation. People who may see no secrets read it,
/// too.
pub(crate) fn audited(operation: &Operation) -> String {
    let (act, matched) = (word(operation.act), operation.matched);
    redact_text(&format!("{act} {}: {matched} match", tasks(operation))).0
}
