//! TLS for tests: a CA of their own, and servers that speak it.

mod authority;
mod front;
mod server;

pub use authority::{Authority, Issued};
pub use front::TlsFront;
pub use server::TlsServer;
