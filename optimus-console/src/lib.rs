//! The web console of the Optimus task queue: what runs and where, what failed and why, and the
//! buttons for it, in a browser.
//!
//! [`Console::router`] makes routes for a program of your own, and [`Console::serve`] serves them
//! alone, as `optimus console` does. Without [`Auth`] a console answers its own machine only.
//!
//! Every number that it shows is read by one [`Sampler`](optimus_core::Sampler) a process, however
//! many browsers watch. Every act is written down before it is done.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod api;
mod assets;
mod carrying;
mod console;
mod console_error;
mod guard;
mod known_tasks;
mod openapi;
mod plain;
mod problem;
mod sampling;
mod seat;
mod server;
mod shared;
mod stats_of_all;
mod view;

use optimus_core::redact;

#[doc(hidden)]
pub use self::openapi::openapi_json;
pub use self::{
    access::{Auth, CustomAuth, Identity, Payloads, Role, Secrets, TrustedHeader},
    console::Console,
    console_error::ConsoleError,
    server::ConsoleListener,
};
