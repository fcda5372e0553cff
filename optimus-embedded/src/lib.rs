//! The engine behind `memory://`: a small keyspace inside the process that runs the project's Lua
//! scripts unchanged.
//!
//! Use it for the quickstart, for unit tests and for deterministic simulation. **It is not a server
//! and not for production**: it writes nothing to disk, no other process can connect, and it has
//! only the commands that this project uses. The store refuses any other command or option with
//! `ERR optimus-embedded does not implement 'X'`, and never ignores one. A differential test
//! compares the implemented commands with a real server.
//!
//! A [`Store`] is one keyspace with one long-lived Lua 5.1 VM. [`Store::connection`] returns a
//! [`Connection`], which is a [`redis::aio::ConnectionLike`]. Code for a real connection runs on it
//! unchanged, and receives the same [`redis::Value`]s.
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
//! # Differences from a server
//!
//! - Replies follow protocol version 2. Error texts are those of Redis 7.0.
//! - `HGETALL` and similar commands reply in insertion order, which a removal may change.
//! - A command runs to its end in the thread that polls it, under one lock. Only `BLPOP` waits, and
//!   it delays no other command of the same connection.
//! - A `BLPOP` whose future is dropped gives back the element that it was about to return.
//! - `MULTI` and `EXEC` exist only as atomic pipelines. If a queued command is refused, the error
//!   is the server's `EXECABORT`, without the list of causes that redis-rs attaches.
//! - Scripts have the libraries base, `string`, `table`, `math` and `cjson`, without functions that
//!   compile code or access the VM (`load`, `loadstring`, `rawset`, `coroutine`), and without
//!   `bit`, `struct` and `cmsgpack`. `math.random` returns the same sequence in every store.
//! - A script that never ends is not stopped.

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
pub use store::{Room, Store};
