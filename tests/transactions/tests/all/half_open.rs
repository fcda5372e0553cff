//! Connections to the database that stay open without any answer, as after a failover or behind a
//! router that is gone.

use std::{
    future::pending,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use optimus_sql::Relay;
use sqlx::{MySql, Pool, Postgres};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};

use crate::{
    databases::TestDb,
    setup::{Seen, Setup},
};

/// Carries connections to a socket; those that are there when it freezes stay open, and no byte
/// passes them again.
struct Middle {
    port: u16,
    freeze: watch::Sender<u32>,
    opened: Arc<AtomicU32>,
}

impl Middle {
    async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (freeze, opened) = (watch::Sender::new(0), Arc::new(AtomicU32::new(0)));
        let (frozen, counts) = (freeze.clone(), opened.clone());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                counts.fetch_add(1, Ordering::Relaxed);
                let mut ends = frozen.subscribe();
                tokio::spawn(carry(client, socket.clone(), async move {
                    ends.changed().await.ok();
                }));
            }
        });
        Self { port, freeze, opened }
    }
}

async fn carry(mut client: TcpStream, socket: PathBuf, freezes: impl Future<Output = ()>) {
    let mut server = UnixStream::connect(socket).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        () = freezes => {
            // As behind a router that is gone: no end arrives at either side.
            pending::<()>().await;
        }
    }
}

async fn a_relay_opens_another_connection<DB: TestDb>(
    setup: Setup<DB>,
    middle: Middle,
    pool: Pool<DB>,
) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let relay = Relay::new(&pool, &setup.client).start().await.unwrap();
    setup.commit(1).await;
    seen.has(1).await;
    middle.freeze.send_modify(|times| *times += 1);
    let before = middle.opened.load(Ordering::Relaxed);
    // The database itself is well, also through the same way.
    setup.commit(2).await;
    seen.has(2).await;
    assert!(middle.opened.load(Ordering::Relaxed) > before);
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_connection_holds_nothing_up_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let folder = setup.database.split("host=").nth(1).unwrap();
    let middle = Middle::to(format!("{folder}/.s.PGSQL.5432").into()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/{}", middle.port, setup.namespace);
    let pool = Postgres::connect(&url).await;
    a_relay_opens_another_connection(setup, middle, pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_connection_holds_nothing_up_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    let socket = setup.database.split("socket=").nth(1).unwrap();
    let middle = Middle::to(socket.into()).await;
    let url = format!("mysql://root@127.0.0.1:{}/{}", middle.port, setup.namespace);
    let pool = MySql::connect(&url).await;
    a_relay_opens_another_connection(setup, middle, pool).await;
}
