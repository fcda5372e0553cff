//! TLS for tests: a test CA, and servers with TLS.

mod authority;
mod front;
mod server;

pub use authority::{Authority, Issued};
pub use front::TlsFront;
pub use server::TlsServer;
