//! One row of the results: the measurement, its parameters, and the values.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::field::{Field, Sample, Spread, spreads};

/// The parameters that vary between the rows of a measurement, by name: `in_flight`, `processes`,
/// `batch`, `backlog`, `queues`, `workers`, `payload` and others.
pub(crate) type Params = BTreeMap<&'static str, Value>;

/// A row of the results.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The name of the measurement.
    pub(crate) name: &'static str,
    /// The name of the peer. None means Optimus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<String>,
    pub(crate) params: Params,
    #[serde(flatten)]
    pub(crate) values: BTreeMap<Field, Spread>,
}

impl Row {
    /// Returns a row of Optimus.
    pub(crate) fn of_runs(name: &'static str, params: Params, runs: &[Sample]) -> Self {
        Self { name, peer: None, params, values: spreads(runs) }
    }

    /// Returns the same row for another queue.
    pub(crate) fn of_peer(mut self, peer: &str) -> Self {
        self.peer = Some(peer.to_owned());
        self
    }
}

/// Returns parameters from pairs: `params([("in_flight", 100.into())])`.
pub(crate) fn params<const N: usize>(pairs: [(&'static str, Value); N]) -> Params {
    pairs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_flat_object_and_has_a_peer_only_if_it_is_of_another_queue() {
        let run = Sample::new().with(Field::TasksPerS, 5.0);
        let row = Row::of_runs("drain", params([("in_flight", 100.into())]), &[run]);
        let spread = serde_json::json!({ "min": 5.0, "median": 5.0, "max": 5.0 });
        let expected = serde_json::json!({
            "name": "drain", "params": { "in_flight": 100 }, "tasks_per_s": spread,
        });
        assert_eq!(serde_json::to_value(&row).unwrap(), expected);
        assert_eq!(serde_json::to_value(row.of_peer("x")).unwrap()["peer"], "x");
    }
}
