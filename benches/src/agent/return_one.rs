//! The floor of sequential submits. It is a script that only returns 1, called with a submit's
//! words over a connection with the same settings.

use std::time::{Duration, Instant};

use anyhow::ensure;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo};

const SCRIPT: &str = "return 1";
const PATIENCE: Duration = Duration::from_secs(8);
const PIPELINE_BUFFER: usize = 4096;
const WRITE_BOUNDARY_BYTES: usize = 128 * 1024;

/// Calls the script this often, one call after another. Returns the time in seconds.
///
/// # Errors
///
/// When Redis does not reply 1.
pub(super) async fn call(url: &str, words: &[Vec<u8>], count: u64) -> anyhow::Result<f64> {
    let mut connection = connect(url).await?;
    let hash: String =
        redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut connection).await?;
    let begun = Instant::now();
    for _ in 0..count {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&hash);
        for word in words {
            command.arg(word);
        }
        let answer: u64 = command.query_async(&mut connection).await?;
        ensure!(answer == 1, "`return 1` replied {answer}");
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Returns the settings of the library's own connections.
async fn connect(url: &str) -> anyhow::Result<MultiplexedConnection> {
    let info = url.into_connection_info()?;
    let tcp = TcpSettings::default().set_nodelay(true);
    let client = Client::open(info.set_tcp_settings(tcp))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_pipeline_buffer_size(PIPELINE_BUFFER)
        .set_write_backpressure_boundary(WRITE_BOUNDARY_BYTES);
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}
