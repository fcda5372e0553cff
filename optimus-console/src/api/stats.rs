//! What ended, by minutes, hours or days.

use axum::Json;
use optimus_core::StatsUnit;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    problem::{ErrorBody, Problem},
    seat::{Asked, Named, QUEUE_IN_PATH, Seat, Segment},
    stats_of_all::StatsOfAll,
    view::{StatsRowView, StatsShown, TaskStatsRow},
};

/// The length of a row.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    #[default]
    Minute,
    Hour,
    Day,
}

/// Which time.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsOf {
    /// The length of a row.
    #[serde(default)]
    #[param(inline)]
    unit: Unit,
    /// How many rows: 60 unless it is given, up to 120 minutes, 336 hours or 180 days.
    last: Option<u32>,
}

/// What ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsPage {
    /// `minute`, `hour` or `day`.
    unit: &'static str,
    until_ms: u64,
    /// The oldest first; a time in which nothing ended has zeros.
    rows: Vec<StatsRowView>,
    by_task: Vec<TaskStatsRow>,
    /// How many queues were added up.
    queues: usize,
    /// How many were left out, because there are too many.
    left_out: usize,
}

impl StatsOf {
    fn asked(&self) -> (StatsUnit, u32) {
        let unit = match self.unit {
            Unit::Minute => StatsUnit::Minute,
            Unit::Hour => StatsUnit::Hour,
            Unit::Day => StatsUnit::Day,
        };
        (unit, self.last.unwrap_or(60).clamp(1, unit.kept()))
    }
}

fn page_of(sum: &StatsShown, (queues, left_out): (usize, usize)) -> StatsPage {
    StatsPage {
        unit: sum.unit(),
        until_ms: sum.until_ms(),
        rows: sum.rows(),
        by_task: sum.by_task(),
        queues,
        left_out,
    }
}

/// Shows what ended in a queue.
#[utoipa::path(get, path = "/api/v1/queues/{queue}/stats", tag = "look",
    params(("queue" = String, Path, description = QUEUE_IN_PATH), StatsOf),
    responses((status = 200, body = StatsPage), (status = 403, body = ErrorBody)))]
pub(crate) async fn of_queue(
    seat: Seat,
    Named(Segment(name)): Named<Segment>,
    Asked(asked): Asked<StatsOf>,
) -> Result<Json<StatsPage>, Problem> {
    let queue = seat.queue(&name)?;
    let (unit, last) = asked.asked();
    let mut sum = seat.inspector().stats_sum(&[queue], unit, last).await?;
    if let Some((_, problem)) = sum.unreadable.pop() {
        return Err(problem.into());
    }
    Ok(Json(page_of(&StatsShown::of(sum, last), (1, 0))))
}

/// Shows what ended in all queues, up to 1,000 of them. All who ask for the same share
/// one read: each 5 s, and with many queues less often, up to 60 s.
#[utoipa::path(get, path = "/api/v1/stats", tag = "look", params(StatsOf), responses(
    (status = 200, body = StatsPage)))]
pub(crate) async fn of_all(
    seat: Seat,
    Asked(asked): Asked<StatsOf>,
) -> Result<Json<StatsPage>, Problem> {
    let (unit, last) = asked.asked();
    let sum = StatsOfAll::read(&seat.app, &seat.identity, unit, last).await?;
    Ok(Json(page_of(&sum.stats, (sum.queues, sum.left_out))))
}
