//! Helpers for the tests of Optimus: real Redis servers that end with the test, real
//! processes to kill, and signals to wait on instead of sleeping.
//!
//! This crate depends on no other Optimus crate, so every crate can use it in its tests. In reading
//! order: [`RedisServer`] is a private server to kill, pause and restart. [`shared_redis`] is a
//! running one that no test may disturb; each test uses its own [`namespace`]. [`Signal`], [`Gate`]
//! and [`Hold`] order what happens inside one process, [`eventually`] awaits conditions that only
//! polling can detect, [`EachEvent`] reads the log, and [`Proc`] runs a program. A [`ChildGuard`]
//! process, such as a server or a program, dies with the test. Reads of a [`hanging_file`] hang. A
//! [`FaultProxy`] stands between a client and a server and causes network faults. A
//! [`PostgresServer`] and a [`MariaDbServer`] are private databases, and a [`PrometheusServer`]
//! scrapes metrics. A [`TlsServer`] speaks TLS, with certificates of an [`Authority`]. [`history`]
//! is the record of a long run, and its checker. [`exposition`] reads metrics, and [`http_get`]
//! gets them. A [`Mutant`] is a deliberate bug that tests must notice. [`ZONES`] are time zones.

#[cfg(feature = "soak")]
mod disk;
#[cfg(feature = "soak")]
pub mod history;

mod binary;
mod child;
pub mod exposition;
mod faketime;
mod http;
mod launch;
mod mutant;
mod namespace;
mod ping;
mod pipe;
mod prometheus;
mod ready;
mod server;
mod shared;
mod sql_server;
mod zones;

#[cfg(feature = "async")]
mod admin;
#[cfg(feature = "async")]
mod each_event;
#[cfg(feature = "async")]
mod eventually;
#[cfg(feature = "async")]
mod gate;
#[cfg(feature = "async")]
mod hold;
#[cfg(feature = "async")]
mod output;
#[cfg(feature = "async")]
mod process;
#[cfg(feature = "async")]
mod proxy;
#[cfg(feature = "async")]
mod signal;
#[cfg(feature = "tls")]
mod tls;

pub use binary::{REDIS_SERVER_VAR, find_redis_server};
pub use child::ChildGuard;
pub use faketime::{fake_clock, has_faketime};
pub use http::{HttpAnswer, http_get};
pub use launch::{RedisServerBuilder, TlsFiles};
pub use mutant::Mutant;
pub use namespace::namespace;
pub use pipe::hanging_file;
pub use prometheus::{PrometheusServer, find_prometheus, promtool};
pub use server::RedisServer;
pub use shared::{SHARED_REDIS_VAR, SharedRedis, shared_redis};
pub use sql_server::{MariaDbServer, PostgresServer, find_mariadb, find_postgres};
pub use zones::ZONES;

#[cfg(feature = "async")]
pub use each_event::{EachEvent, LogEvent};
#[cfg(feature = "async")]
pub use eventually::eventually;
#[cfg(feature = "async")]
pub use gate::Gate;
#[cfg(feature = "async")]
pub use hold::Hold;
#[cfg(feature = "async")]
pub use process::{Proc, ProcBuilder};
#[cfg(feature = "async")]
pub use proxy::{FaultProxy, Way};
#[cfg(feature = "async")]
pub use signal::Signal;
#[cfg(feature = "tls")]
pub use tls::{Authority, Issued, TlsFront, TlsServer};
