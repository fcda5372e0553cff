//! Sets and removes limits: [`LimitTold`].

use optimus_core::{Client, Gate, Limit, LimitSetters, QueueName, Rate};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::Problem;

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
        let limit = rate.into_iter().fold(Limit::new(), Limit::rate);
        let limit = self.burst.into_iter().fold(limit, Limit::burst);
        let limit = self.max_working.into_iter().fold(limit, Limit::max_working);
        limit.check()?;
        Ok(limit)
    }
}

pub(super) async fn set(
    client: &Client,
    queue: QueueName,
    gate: Gate,
    limit: Limit,
) -> Result<String, Problem> {
    let answer = client.gate(queue, gate).set(limit).await?;
    Ok(format!("{}; it {answer}", LimitSetters::outcome(&limit)))
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
