//! The engine behind `memory://`: a small keyspace inside the process that runs the project's Lua
//! files unchanged.
//!
//! It serves the quickstart, the unit tests of users and deterministic simulation. **It is not a
//! server and not for production**: nothing is written to disk, nobody outside the process can
//! connect, and only the commands that this project uses exist. Any other command or option is
//! refused with `ERR optimus-embedded does not implement 'X'`, never ignored; a differential test
//! holds the ones that exist against a real server.
//!
//! A [`Store`] is one keyspace with one long-lived Lua 5.1 VM. [`Store::connection`] gives a
//! [`Connection`], which is a [`redis::aio::ConnectionLike`]: code written for a real connection
//! runs on it as it is, and gets the same [`redis::Value`]s.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> redis::RedisResult<()> {
//! use optimus_embedded::{Clock, Store};
//!
//! let store = Store::new(Clock::system());
//! let mut connection = store.connection();
//! redis::cmd("RPUSH").arg("letters").arg("a").arg("b").exec_async(&mut connection).await?;
//! let script = redis::Script::new("return redis.call('LPOP', KEYS[1])");
//! let letter: String = script.key("letters").invoke_async(&mut connection).await?;
//! assert_eq!(letter, "a");
//! # Ok(())
//! # }
//! ```
//!
//! # Where it differs from a server
//!
//! - Replies are those of protocol version 2, and texts of errors those of Redis 7.0.
//! - `HGETALL` and its kin answer in insertion order, which a removal may change.
//! - A command runs to its end in the thread that polls it, under one lock. Only `BLPOP` waits,
//!   and each wait is on its own: it delays no other command of the same connection.
//! - A `BLPOP` whose future is dropped gives back what it was about to return.
//! - `MULTI` and `EXEC` exist as atomic pipelines only. Where a queued command is refused, the
//!   error is the server's `EXECABORT`, without the list of causes that redis-rs attaches.
//! - Scripts get the libraries base, `string`, `table`, `math` and `cjson`, without whatever
//!   compiles code or reaches into the VM (`load`, `loadstring`, `rawset`, `coroutine`), and
//!   without `bit`, `struct` and `cmsgpack`. `math.random` yields the same sequence in every store.
//! - Nothing stops a script that never ends.

#![forbid(unsafe_code)]

mod blocking;
mod clock;
mod commands;
mod connection;
mod engine;
mod error;
mod glob;
mod keyspace;
mod lua;
mod number;
mod reply;
#[cfg(feature = "simulation")]
pub mod simulation;
mod store;
mod value;
mod zset;

pub use clock::Clock;
pub use connection::Connection;
pub use store::Store;
