//! Reads rows of the outbox as calls: [`read_calls`].

use std::time::Duration;

use optimus_core::{Client, RecordError, Submission};

use crate::{noted::id_of, stream::StoredRow};

const TOO_LARGE: &str = "the body is too large to be read: above 256 MiB";

/// A row that can be submitted.
#[derive(Debug, Clone)]
pub(crate) struct StoredCall {
    pub(crate) seq: i64,
    pub(crate) call: Submission,
}

/// Rows of the outbox, sorted by what can be done with them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) good: Vec<StoredCall>,
    /// Rows that can never be submitted, each with the reason.
    pub(crate) bad: Vec<(i64, String)>,
    /// A newer program has stored the next row. This program must not pass it.
    pub(crate) newer: Option<String>,
}

/// Reads rows in order, and refuses those that this client would not submit.
pub(crate) fn read_calls(client: &Client, rows: Vec<StoredRow>) -> Calls {
    read(rows, |row| {
        let call = read_call(row)?;
        client.check_stored(&call).map_err(|problem| Problem::Bad(problem.to_string()))?;
        Ok(call)
    })
}

/// Reads rows that a relay has noted, in order. That relay has checked them. Another client may
/// have other limits, and must send what Redis may already have.
pub(crate) fn read_noted_calls(rows: Vec<StoredRow>) -> Calls {
    read(rows, read_call)
}

fn read(
    rows: Vec<StoredRow>,
    read_one: impl Fn(&StoredRow) -> Result<Submission, Problem>,
) -> Calls {
    let mut calls = Calls::default();
    for row in rows {
        let seq = row.seq;
        match read_one(&row) {
            Ok(call) => calls.good.push(StoredCall { seq, call }),
            Err(Problem::Bad(why)) => calls.bad.push((seq, why)),
            Err(Problem::Newer(why)) => {
                calls.newer = Some(why);
                break;
            }
        }
    }
    calls
}

enum Problem {
    Bad(String),
    Newer(String),
}

fn read_call(row: &StoredRow) -> Result<Submission, Problem> {
    let id = id_of(&row.queue, &row.id).map_err(Problem::Bad)?;
    let age = row.age.min(Duration::from_secs(u64::from(u32::MAX)));
    let body = row.body.as_deref().ok_or_else(|| Problem::Bad(TOO_LARGE.to_owned()))?;
    Submission::from_bytes(id, body, age).map_err(|problem| match problem {
        RecordError::Newer(_) => Problem::Newer(problem.to_string()),
        problem => Problem::Bad(problem.to_string()),
    })
}
