//! Sets and removes limits, and finds who has set them: [`LimitTold`], [`Setters`].

use std::collections::HashMap;

use optimus_core::{AuditRow, Client, Error, Gate, Inspector, Limit, QueueName, Rate};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// In how many of the latest acts is looked for who has set a limit.
const ACTS_MAX: usize = 500;

/// A limit as an operator writes it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitTold {
    /// How many tasks may start in a time, such as `100/s`, `10/m` or `5/h`.
    rate: Option<String>,
    /// How many of them may start at once after a pause.
    burst: Option<u32>,
    /// How many tasks may run at once, over all workers.
    max_working: Option<u32>,
}

impl LimitTold {
    /// Reads it. What no limit can have is refused here, before the act is written down.
    pub(super) fn read(&self) -> Result<Limit, Problem> {
        let rate = self.rate.as_deref().map(str::trim).filter(|rate| !rate.is_empty());
        let rate = rate.map(str::parse::<Rate>).transpose()?;
        if rate.is_none() && self.max_working.is_none() {
            return Err(Problem::invalid("a limit needs a rate or max_working"));
        }
        if rate.is_none() && self.burst.is_some() {
            return Err(Problem::invalid("a burst has no effect without a rate"));
        }
        if [self.burst, self.max_working].contains(&Some(0)) {
            return Err(Problem::invalid("with 0 no task starts; pause the limit instead"));
        }
        let limit = rate.into_iter().fold(Limit::new(), Limit::rate);
        let limit = self.burst.into_iter().fold(limit, Limit::burst);
        Ok(self.max_working.into_iter().fold(limit, Limit::max_working))
    }
}

pub(super) async fn set(
    client: &Client,
    queue: QueueName,
    gate: Gate,
    limit: Limit,
) -> Result<String, Problem> {
    let answer = client.gate(queue, gate).set(limit).await?;
    Ok(format!("set to {limit}; it {answer}"))
}

pub(super) async fn remove(
    client: &Client,
    queue: QueueName,
    gate: Gate,
) -> Result<String, Problem> {
    let answer = client.gate(queue, gate).remove().await?;
    let done = if answer.was_set { "removed" } else { "no limit was set" };
    Ok(format!("{done}; it {answer}"))
}

/// Who has set limits, of the latest acts.
pub(super) struct Setters(HashMap<String, AuditRow>);

impl Setters {
    pub(super) async fn read(inspector: &Inspector) -> Result<Self, Error> {
        let page = match inspector.audit(None, ACTS_MAX).await {
            Err(problem) if problem.is_unavailable() => return Err(problem),
            // Acts that can't be read hide no limit.
            read => read.unwrap_or_default(),
        };
        let mut latest = HashMap::new();
        for row in page.rows {
            let is_done = row.outcome.as_ref().is_some_and(|text| !text.starts_with("failed"));
            if is_done && ["limit.set", "limit.remove"].contains(&row.act.act.as_str()) {
                latest.entry(row.act.target.clone()).or_insert(row);
            }
        }
        Ok(Self(latest))
    }

    /// Returns the act that has set a limit. It is not known if a program has set it, or if many
    /// acts came after it.
    pub(super) fn of(&self, queue: &QueueName, name: &str) -> Option<&AuditRow> {
        self.0.get(&format!("{queue} {name}")).filter(|row| row.act.act == "limit.set")
    }
}
