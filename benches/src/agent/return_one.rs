//! The floor of sequential submits, and of the latency beside a load. It is a script that only
//! returns 1, called over a connection with the settings of the library.

use std::time::{Duration, Instant};

use anyhow::ensure;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo};

const SCRIPT: &str = "return 1";
const PATIENCE: Duration = Duration::from_secs(8);
const PIPELINE_BUFFER: usize = 4096;
const WRITE_BOUNDARY_BYTES: usize = 128 * 1024;

/// Calls the script this often with these words, one call after another. Returns the time in
/// seconds.
///
/// # Errors
///
/// When Redis does not reply 1.
pub(super) async fn call(url: &str, words: &[Vec<u8>], count: u64) -> anyhow::Result<f64> {
    let (mut connection, command) = load(url, words).await?;
    let begun = Instant::now();
    for _ in 0..count {
        once(&mut connection, &command).await?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Calls the script this often without words, once in each interval. Returns the time of each call
/// until its reply, in µs.
///
/// # Errors
///
/// When Redis does not reply 1.
pub(super) async fn call_every(
    url: &str,
    interval: Duration,
    count: u64,
) -> anyhow::Result<Vec<f64>> {
    let (mut connection, command) = load(url, &[b"0".to_vec()]).await?;
    let (mut tick, mut latencies_us) = (tokio::time::interval(interval), Vec::new());
    for _ in 0..count {
        tick.tick().await;
        let begun = Instant::now();
        once(&mut connection, &command).await?;
        latencies_us.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(latencies_us)
}

async fn load(url: &str, words: &[Vec<u8>]) -> anyhow::Result<(MultiplexedConnection, Cmd)> {
    let mut connection = connect(url).await?;
    let hash: String =
        redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut connection).await?;
    let mut command = redis::cmd("EVALSHA");
    command.arg(&hash);
    for word in words {
        command.arg(word);
    }
    Ok((connection, command))
}

async fn once(connection: &mut MultiplexedConnection, command: &Cmd) -> anyhow::Result<()> {
    let answer: u64 = command.query_async(connection).await?;
    ensure!(answer == 1, "`return 1` replied {answer}");
    Ok(())
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
