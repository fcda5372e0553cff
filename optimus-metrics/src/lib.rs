//! The metrics of Optimus: their names ([`names`]), their text ([`Exposition`]), and the HTTP
//! server of metrics and probes ([`Server`]).
//!
//! This crate is for the other Optimus crates. It knows nothing of tasks: who serves metrics gives
//! the numbers.

mod answer;
mod exposition;
mod listener;
pub mod names;
mod server;

pub use self::{
    answer::Answer,
    exposition::{Exposition, Family},
    listener::{Listener, parse_address},
    names::{Kind, Metric},
    server::Server,
};
