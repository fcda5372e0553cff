//! The HTTP server of metrics and probes: [`Server`].
//!
//! It has a thread and a runtime of its own, so that handlers that block their runtime do not block
//! probes. Each connection has one request and a deadline. If there are too many connections, the
//! oldest one is closed: slow clients can't keep a probe out.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt, io,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    sync::oneshot,
    task::{JoinHandle, yield_now},
    time::{sleep, timeout},
};

use crate::{answer::Answer, listener::Listener};

/// The most connections at once.
const CONNECTIONS_MAX: usize = 64;
/// The most bytes of a request.
const REQUEST_MAX: usize = 16 * 1024;
/// How long a client has to send its request.
const REQUEST_WITHIN: Duration = Duration::from_secs(3);
/// How long a client has to send its request and to read the answer.
const CONNECTION_WITHIN: Duration = Duration::from_secs(10);
/// How long the server waits after the system could not accept a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// How long the end of the server is waited for.
const END_WITHIN: Duration = Duration::from_millis(500);

/// A server that runs until this value is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<Infallible>>,
    /// Closed when the port is closed.
    ended: oneshot::Receiver<Infallible>,
}

type Asked = Arc<dyn Fn(&str, &str) -> Answer + Send + Sync>;

impl Server {
    /// Serves a port. `answer` is given the path and the query of each request. It runs on the
    /// thread of the server, so it must not wait.
    ///
    /// # Errors
    /// The system can't start a thread.
    pub fn start(
        listener: Listener,
        answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let address = listener.address();
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let (open, ended) = oneshot::channel::<Infallible>();
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let answer: Asked = Arc::new(answer);
        thread::Builder::new().name("optimus-metrics".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = serve(listener, answer) => {}
                }
            });
            drop(runtime);
            drop(open);
        })?;
        Ok(Self { address, stop: Some(stop), ended })
    }

    /// Returns the address that it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and all connections, and waits for that for a moment.
    pub async fn end(mut self) {
        drop(self.stop.take());
        // Nothing is sent, because the sender is only dropped.
        drop(timeout(END_WITHIN, &mut self.ended).await);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn serve(listener: Listener, answer: Asked) {
    // Only a thread without a runtime can't do this.
    let Ok(listener) = TcpListener::from_std(listener.listener) else { return };
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_AGAIN).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS_MAX
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(tokio::spawn(connection(stream, answer.clone())));
        // Those that wait to be accepted must not push out one that was not looked at yet.
        yield_now().await;
    }
}

async fn connection(stream: TcpStream, answer: Asked) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &answer);
        async { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WITHIN)
        .max_buf_size(REQUEST_MAX);
    let serving = http.serve_connection(TokioIo::new(stream), service);
    // A client that fails or is too slow has no answer, and needs none.
    drop(timeout(CONNECTION_WITHIN, serving).await);
}

fn respond(request: &Request<Incoming>, answer: &Asked) -> Response<Full<Bytes>> {
    let uri = request.uri();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let answer = if is_read {
        let asked = || answer(uri.path(), uri.query().unwrap_or_default());
        catch_unwind(AssertUnwindSafe(asked))
            .unwrap_or_else(|_| Answer::text(500, "the answer could not be made"))
    } else {
        Answer::text(405, "only GET and HEAD are allowed here")
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = answer.status.try_into().unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !is_read {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
