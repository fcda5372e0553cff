//! Two tenants call a service with a limit for each tenant. The service of the example answers 429
//! if a tenant calls it too often; then that tenant pauses, and the other one continues.
//!
//! `cargo run --example two_tenants` needs no server.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use optimus::{Client, Context, Retry, Worker};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

const URL: &str = "memory://two-tenants";

/// How many calls of the greedy tenant the service answers before it refuses one.
const REFUSES_AFTER: u32 = 5;

/// For how long the service refuses a tenant.
const REFUSES_FOR: Duration = Duration::from_millis(500);

/// The calls of a tenant, as the service counts them.
#[derive(Default)]
struct Tenant {
    calls: u32,
    refused_until: Option<Instant>,
}

/// Answers each request of a tenant with 200 or 429.
async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let tenants = Arc::new(Mutex::new(HashMap::<String, Tenant>::new()));
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(stream, tenants.clone()));
    }
}

async fn answer(
    mut stream: TcpStream,
    tenants: Arc<Mutex<HashMap<String, Tenant>>>,
) -> std::io::Result<()> {
    let mut request = vec![0; 1_024];
    let length = stream.read(&mut request).await?;
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    let name = request.split_whitespace().nth(1).unwrap_or("/").to_owned();
    let mut tenants = tenants.lock().await;
    let tenant = tenants.entry(name.clone()).or_default();
    tenant.calls += 1;
    if name == "/greedy" && tenant.calls == REFUSES_AFTER {
        tenant.refused_until = Some(Instant::now() + REFUSES_FOR);
    }
    let is_refused = tenant.refused_until.is_some_and(|until| Instant::now() < until);
    let text = if is_refused { "429 Too Many Requests\r\nretry-after-ms: 500" } else { "200 OK" };
    stream.write_all(format!("HTTP/1.1 {text}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await
}

/// The address of the service.
#[derive(Clone)]
struct Service(std::net::SocketAddr);

/// One call for a tenant. At most two calls of a tenant are in progress, and at most 50 of all
/// tenants start in a second.
#[optimus::task(
    lane = "tenant-{tenant}",
    lane_width = 2,
    limit = "service",
    rate = "50/s",
    max_retry = 10
)]
async fn call(
    tenant: String,
    number: u32,
    #[data] service: Service,
    ctx: Context,
) -> anyhow::Result<u32> {
    let mut stream = TcpStream::connect(service.0).await?;
    stream.write_all(format!("GET /{tenant} HTTP/1.1\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let status = response.split_whitespace().nth(1).context("a status")?;
    println!("{tenant}: call {number}, attempt {}: {status}", ctx.attempt());
    match status {
        "200" => Ok(number),
        // The other tenants do not wait.
        "429" => Err(Retry::after(REFUSES_FOR).pause_lane().because("429").into()),
        status => bail!("the service answers {status}"),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let service = Service(listener.local_addr()?);
    tokio::spawn(serve(listener));

    let client = Client::connect(URL).await?;
    let greedy = (1..=20).map(|number| call("greedy".to_owned(), number));
    let modest = (1..=10).map(|number| call("modest".to_owned(), number));
    let handles = client.submit_all(greedy.chain(modest)).await?;

    let worker = Worker::builder(URL).data(service).build()?;
    let work = async {
        let mut results = client.results(handles);
        while let Some((_, result)) = results.next().await {
            result?;
        }
        Ok::<(), optimus::Error>(())
    };
    worker.run_until(work).await??;
    println!("all calls are done");
    Ok(())
}
