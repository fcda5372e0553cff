//! One connection of a browser.

use std::time::Duration;

use axum::{Router, body::Body, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::OwnedSemaphorePermit,
};

use super::patient::Patient;
use crate::access::Peer;

/// The most bytes of the head of a request.
const HEAD_MAX: usize = 16 * 1024;
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// How long a client has to send the head of its next request.
const HEAD_WITHIN: Duration = Duration::from_secs(20);

/// Serves a connection to its end.
pub(super) async fn serve<S>(stream: S, peer: Peer, router: Router, seat: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let router = router.clone();
        async move { hyper::service::Service::call(&router, request.map(Body::new)).await }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_MAX);
    // A client that fails or is too slow has no answer, and needs none.
    drop(http.serve_connection(TokioIo::new(Patient::new(stream)), service).await);
    drop(seat);
}
