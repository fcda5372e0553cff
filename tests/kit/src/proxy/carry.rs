//! Carries one connection through the proxy: requests to the server, and replies to the client.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::fault::Fault;
use super::flow::{Paced, Way};
use super::frame::frame_len;
use super::{Ending, Shared};

/// The treatment of the next reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Relay,
    Swallow,
    /// The proxy drops the reply and ends the connection.
    SwallowAndCut,
    /// There is no reply, because the connection ends here.
    Cut,
}

/// The treatment of the next replies, in the order of the requests.
#[derive(Default)]
struct Fates {
    queue: Mutex<VecDeque<Fate>>,
    added: Notify,
}

impl Fates {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Fate>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, fate: Fate) {
        self.queue().push_back(fate);
        self.added.notify_one();
    }
}

/// Carries one client's connection until its end.
pub(super) async fn carry(shared: Arc<Shared>, mut client: TcpStream) {
    let mut ending = shared.ending.subscribe();
    // As without a proxy, an error in either direction shows as the end of the connection.
    let _ = client.set_nodelay(true);
    let upstream = shared.upstream.borrow().clone();
    let Ok(server) = upstream.connect().await else { return };
    let (server_reader, server_writer) = tokio::io::split(server);
    let (client_reader, client_writer) = client.split();
    let paced_up = Paced { way: Way::Up, flow: shared.flow.subscribe(), writer: server_writer };
    let paced_down = Paced { way: Way::Down, flow: shared.flow.subscribe(), writer: client_writer };
    let fates = Fates::default();
    let end = tokio::select! {
        _ = requests(&shared, &fates, client_reader, paced_up) => Ending::Close,
        _ = replies(&fates, server_reader, paced_down) => Ending::Close,
        _ = ending.changed() => *ending.borrow(),
    };
    match end {
        Ending::Close => {}
        Ending::Reset => drop(client.set_zero_linger()),
        Ending::Freeze => std::future::pending().await,
    }
}

/// Carries requests until the client's end, or until a request is the last one.
async fn requests(
    shared: &Shared,
    fates: &Fates,
    mut client: impl AsyncRead + Unpin,
    mut server: Paced<impl AsyncWrite + Unpin>,
) -> io::Result<()> {
    let (mut read, mut ready) = (Vec::new(), Vec::new());
    loop {
        while let Some(length) = frame_len(&read) {
            let request: Vec<u8> = read.drain(..length).collect();
            let fault = shared.counter.count(&request);
            if fault == Some(Fault::DropRequest) {
                server.deliver(&mut ready).await?;
                fates.add(Fate::Cut);
                return std::future::pending().await;
            }
            ready.extend(&request);
            match fault {
                Some(Fault::DropReply) => {
                    fates.add(Fate::SwallowAndCut);
                    server.deliver(&mut ready).await?;
                    return std::future::pending().await;
                }
                Some(Fault::Duplicate) => {
                    fates.add(Fate::Swallow);
                    ready.extend(&request);
                }
                _ => {}
            }
            fates.add(Fate::Relay);
        }
        server.deliver(&mut ready).await?;
        if client.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
}

/// Carries replies until the server's end, or until the reply to the last request.
async fn replies(
    fates: &Fates,
    mut server: impl AsyncRead + Unpin,
    mut client: Paced<impl AsyncWrite + Unpin>,
) -> io::Result<()> {
    let (mut read, mut ready) = (Vec::new(), Vec::new());
    loop {
        while let Some(length) = frame_len(&read) {
            let reply: Vec<u8> = read.drain(..length).collect();
            // A push is not a reply. Without a request, data from the server means that it refuses
            // the connection.
            let fate = if reply[0] == b'>' { None } else { fates.queue().pop_front() };
            match fate.unwrap_or(Fate::Relay) {
                Fate::Relay => ready.extend(&reply),
                Fate::Swallow => {}
                Fate::SwallowAndCut | Fate::Cut => return client.deliver(&mut ready).await,
            }
        }
        client.deliver(&mut ready).await?;
        if fates.queue().front() == Some(&Fate::Cut) {
            return Ok(());
        }
        tokio::select! {
            count = server.read_buf(&mut read) => {
                if count? == 0 {
                    return Ok(());
                }
            }
            () = fates.added.notified() => {}
        }
    }
}
