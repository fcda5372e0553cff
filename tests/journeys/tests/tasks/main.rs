//! Whole lives of tasks: submit, run, end, read.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod blocking;
mod claims_beside;
mod context;
mod contradictions;
mod control_words;
mod deleting;
mod dropped;
mod ending;
mod ending_blocked;
mod follow_ups;
mod headers;
mod history;
mod hostile;
mod hostile_layers;
mod kept_bytes;
mod layer_spans;
mod layers;
mod layers_ended;
mod lifecycle;
mod logs;
mod operating;
mod operation_counted;
mod operation_figures;
mod operation_moves;
mod operations;
mod operations_damaged;
mod outcomes;
mod outcomes_unknown;
mod overdue;
mod overview;
mod payloads;
mod processes;
mod queue_names;
mod records;
mod reporting;
mod results;
mod same_id;
mod statistics;
mod submitting;
mod subscribers;
mod waiting;
