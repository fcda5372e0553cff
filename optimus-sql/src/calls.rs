//! Reads rows of the outbox as calls: [`read_calls`].

use std::time::Duration;

use optimus_core::{Client, RecordError, Submission};

use crate::{noted::id_of, stream::StoredRow};

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

/// Reads rows in order.
pub(crate) fn read_calls(client: &Client, rows: Vec<StoredRow>) -> Calls {
    let mut calls = Calls::default();
    for row in rows {
        let seq = row.seq;
        match read_call(client, &row) {
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

fn read_call(client: &Client, row: &StoredRow) -> Result<Submission, Problem> {
    let id = id_of(&row.queue, &row.id).map_err(Problem::Bad)?;
    let age = row.age.min(Duration::from_secs(u64::from(u32::MAX)));
    let call = Submission::from_bytes(id, &row.body, age).map_err(|problem| match problem {
        RecordError::Newer(_) => Problem::Newer(problem.to_string()),
        problem => Problem::Bad(problem.to_string()),
    })?;
    client.check_stored(&call).map_err(|problem| Problem::Bad(problem.to_string()))?;
    Ok(call)
}
