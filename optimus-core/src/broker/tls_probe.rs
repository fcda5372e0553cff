//! Finds out whether a server that does not answer uses TLS and the URL does not, or the other way
//! round.
//!
//! Neither side reports this mismatch. A Redis with TLS resets the connection when it receives
//! plain commands. A plain Redis does not answer the first bytes of TLS, because it waits for the
//! end of the line.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::{dial::tcp, dial_error::DialError};

pub(super) const SPEAKS_TLS: &str =
    "the server speaks TLS at that port; write rediss:// in place of redis://";
#[cfg(feature = "tls")]
pub(super) const SPEAKS_PLAINLY: &str = "the server does not speak TLS at that port; \
                                         write redis://, or name its TLS port";

/// How long a server has to answer, and how long a TLS handshake may last before the server is
/// probed.
const WITHIN: Duration = Duration::from_secs(1);

/// The client hello of TLS 1.2 up to its random bytes: a record with the message inside.
const HELLO: [u8; 11] = [22, 3, 1, 0, 47, 1, 0, 0, 43, 3, 3];
/// The rest of the message: no session, two usual ciphers, no compression.
const OFFER: [u8; 9] = [0, 0, 4, 0xc0, 0x2f, 0xc0, 0x2b, 1, 0];
/// The first bytes of TLS records: an alert, and a part of a handshake.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// Returns whether the server answers in TLS, even with an alert.
pub(super) async fn speaks_tls(host: &str, port: u16) -> bool {
    let hello = [&HELLO[..], &[7; 32], &OFFER].concat();
    let answer = timeout(WITHIN, first_of_answer(host, port, &hello)).await;
    matches!(answer, Ok(Ok(ALERT | HANDSHAKE)))
}

/// Returns only if the server has not answered in TLS for a while, but answers plain commands.
#[cfg(feature = "tls")]
pub(super) async fn speaks_plainly(host: &str, port: u16) {
    tokio::time::sleep(WITHIN).await;
    if !matches!(first_of_answer(host, port, b"PING\r\n").await, Ok(b'+' | b'-')) {
        std::future::pending::<()>().await;
    }
}

async fn first_of_answer(host: &str, port: u16, words: &[u8]) -> Result<u8, DialError> {
    let mut stream = tcp(host, port, WITHIN).await?;
    stream.write_all(words).await?;
    Ok(stream.read_u8().await?)
}
