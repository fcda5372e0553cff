//! Whole lives over TLS, and the errors when TLS does not work.

use std::{
    fs,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, Gate, Raw, Wait, view};
use optimus_core::{BoxError, Client, Context, Due, Error, Task, TaskState};
use optimus_testkit::{
    Authority, FaultProxy, Issued, RedisServer, TlsFiles, TlsFront, TlsServer, Way, eventually,
    hanging_file, namespace,
};
use optimus_worker::Worker;
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::crypto::CryptoProvider;

const SOON: Duration = Duration::from_secs(20);

/// A task that returns this many bytes.
#[derive(Serialize, Deserialize)]
struct Long {
    bytes: usize,
}

impl Task for Long {
    const NAME: &'static str = "long";
    type Output = String;

    async fn run(self, _: Context) -> Result<String, BoxError> {
        Ok("x".repeat(self.bytes))
    }
}

/// Returns the front of a server with this certificate. The front requires no certificate of a
/// client.
fn files(Issued { cert, key }: Issued) -> TlsFiles {
    TlsFiles { cert, key, client_ca: None }
}

async fn server(issued: Issued) -> TlsServer {
    TlsServer::start(RedisServer::builder(), files(issued)).await
}

fn ca(authority: &Authority) -> String {
    format!("ca={}", authority.ca().display())
}

async fn client_error(url: &str) -> Error {
    Client::connect(url).await.err().unwrap_or_else(|| panic!("{url} was accepted"))
}

/// Returns the error of a client and of a worker, which must be the same.
async fn refused(url: &str) -> Error {
    let by_client = client_error(url).await;
    let worker = Worker::builder(url).quiet().only_named_tasks().task_type::<Double>();
    let worker = worker.build().unwrap().run_until(std::future::pending::<()>());
    assert_eq!(worker.await.unwrap_err().to_string(), by_client.to_string());
    by_client
}

/// Checks that this is an error of TLS, and contains these words.
async fn refused_with(url: &str, words: &[&str]) {
    let problem = refused(url).await;
    assert!(problem.is_tls(), "{problem}");
    for word in words {
        assert!(problem.to_string().contains(word), "{word:?} is missing: {problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_lives_work_over_tls() {
    let authority = Authority::new();
    let mut server = server(authority.server()).await;
    let bench = Bench::shared(&server.url(&ca(&authority)), &namespace()).await;
    let mut admin = Raw::connect(&server.redis().url()).await;
    let gate = Gate::new();
    let worker = bench.worker().task_type::<Double>().task_type::<Wait>().data(gate.clone());
    let worker = bench.start(worker);
    eventually("both waits have begun", SOON, async || {
        let clients = String::from_utf8(admin.run("CLIENT LIST").await.remove(0)).unwrap();
        clients.lines().filter(|client| client.contains("cmd=blpop")).count() == 2
    })
    .await;
    let calls = (0..1_000).map(|number| Double { number }.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    for (number, handle) in (0..).zip(&handles) {
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    let running = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    assert!(running.cancel().await.is_ok());
    assert!(running.result_within(SOON).await.unwrap_err().is_cancelled());
    let later = Double { number: 4 }.call().due(Due::In(Duration::from_millis(50)));
    let later = bench.client.submit(later).await.unwrap();
    assert_eq!(later.result_within(SOON).await.unwrap(), 8);
    worker.stop().await;
    assert!(CryptoProvider::get_default().is_none(), "the process has a provider now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_ask_for_a_certificate_of_the_client() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let asking = TlsFiles { client_ca: Some(authority.ca()), ..files(authority.server()) };
    let server = TlsServer::start(RedisServer::builder(), asking).await;
    let with = |Issued { cert, key }: Issued| {
        server.url(&format!("{}&cert={}&key={}", ca(&authority), cert.display(), key.display()))
    };
    let bench = Bench::shared(&with(authority.client()), &namespace()).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let handle = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    worker.stop().await;

    refused_with(&server.url(&ca(&authority)), &["parameters cert and key"]).await;
    refused_with(&with(stranger.client()), &["does not accept the certificate of", "client.cert"])
        .await;
    let mixed = Issued { key: stranger.client().key, ..authority.client() };
    let problem = refused(&with(mixed)).await;
    assert!(problem.is_invalid() && problem.to_string().contains("together"), "{problem}");
}

#[tokio::test]
async fn a_server_of_another_ca_is_refused_unless_nothing_is_verified() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = server(authority.server()).await;
    for verify in ["", "&verify=ca"] {
        let words = ["no CA of", "ca.pem", "parameter ca"];
        refused_with(&server.url(&format!("{}{verify}", ca(&stranger))), &words).await;
    }
    // This uses the CAs of the system, which may have none.
    let problem = refused(&server.url("")).await;
    assert!(problem.is_tls() || problem.is_invalid(), "{problem}");
    assert!(problem.to_string().contains("parameter ca"), "{problem}");
    Client::connect(&server.url("verify=none")).await.unwrap();
}

#[tokio::test]
async fn a_server_whose_certificate_has_expired_is_refused() {
    let authority = Authority::new();
    let server = server(authority.expired_server()).await;
    for verify in ["", "&verify=ca"] {
        let url = server.url(&format!("{}{verify}", ca(&authority)));
        // No word depends on the time of the attempt: an outage logs each problem once.
        refused_with(&url, &["expired on 2001-01-01T00:00:00Z; renew it", "clock"]).await;
    }
    Client::connect(&server.url("verify=none")).await.unwrap();
}

#[tokio::test]
async fn a_server_whose_certificate_is_of_version_1_is_refused_with_those_words() {
    let file =
        |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let issued = Issued { cert: file("version_1.cert.pem"), key: file("version_1.key.pem") };
    let (server, authority) = (server(issued).await, Authority::new());
    let ca = ca(&authority);
    for parameters in [ca.as_str(), "verify=none"] {
        refused_with(&server.url(parameters), &["X.509 version 1", "version 3"]).await;
    }
}

#[tokio::test]
async fn a_server_with_the_certificate_of_a_ca_is_refused_with_what_to_make_instead() {
    let authority = Authority::new();
    let issued = authority.self_signed();
    let ca = format!("ca={}", issued.cert.display());
    let server = server(issued).await;
    for parameters in [ca.clone(), format!("{ca}&verify=ca")] {
        refused_with(&server.url(&parameters), &["is that of a CA", "-CAkey"]).await;
    }
}

#[tokio::test]
async fn a_server_of_another_name_is_refused_unless_that_name_is_given() {
    let authority = Authority::new();
    let server = server(authority.server_named("redis.internal")).await;
    let ca = ca(&authority);
    refused_with(&server.url(&ca), &["another name", "redis.internal", "server_name"]).await;
    for parameters in ["server_name=redis.internal", "verify=ca"] {
        Client::connect(&server.url(&format!("{ca}&{parameters}"))).await.unwrap();
    }
}

#[tokio::test]
async fn tls_to_a_plain_server_and_plain_to_a_tls_server_are_errors_that_name_it() {
    let plain = RedisServer::builder().tcp().start();
    let url = plain.url().replace("redis://", "rediss://") + "?verify=none";
    refused_with(&url, &["does not speak TLS", "redis://"]).await;
    let authority = Authority::new();
    let server = server(authority.server()).await;
    let url = format!("redis://localhost:{}/", server.port());
    refused_with(&url, &["speaks TLS", "rediss://"]).await;
}

#[tokio::test]
async fn files_that_can_t_be_read_are_named_with_their_parameter() {
    let authority = Authority::new();
    let server = server(authority.server()).await;
    let Issued { cert, key } = authority.client();
    let (ca, cert, key) = (authority.ca(), cert.display(), key.display());
    let ca = ca.display();
    for (parameters, words) in [
        ("ca=/nowhere/ca.pem".to_owned(), ["/nowhere/ca.pem, which ca", "can't be read"]),
        (format!("ca={key}"), ["which ca", "has no certificate"]),
        (format!("ca={ca}&cert={key}&key={key}"), ["which cert", "has no certificate"]),
        (format!("ca={ca}&cert={cert}&key={cert}"), ["which key", "has no key"]),
    ] {
        let problem = refused(&server.url(&parameters)).await;
        assert!(problem.is_invalid(), "{problem}");
        for word in words {
            assert!(problem.to_string().contains(word), "{word:?} is missing: {problem}");
        }
    }
}

#[test]
fn files_that_hang_are_named_and_the_end_of_the_program_does_not_wait_for_them() {
    let server = RedisServer::builder().tcp().start();
    let authority = server.folder().join("ca.pem");
    hanging_file(&authority);
    let url = server.url().replace("redis://", "rediss://");
    let url = format!("{url}?ca={}", authority.display());
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let program = tokio::runtime::Runtime::new().unwrap();
        let problem = program.block_on(client_error(&url));
        drop(program);
        ended.send(problem).unwrap();
    });
    let problem = end.recv_timeout(SOON).expect("the program ends while the file hangs");
    assert!(problem.is_unavailable(), "{problem}");
    assert!(problem.to_string().contains("files for TLS that the URL names"), "{problem}");
    // The thread that reads ends with its file.
    fs::write(&authority, "").unwrap();
}

/// Such a server counts as unavailable until its certificate is renewed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_expires_later_costs_an_outage_and_no_task() {
    let authority = Authority::new();
    let right = authority.server();
    let mut server =
        TlsServer::start(RedisServer::builder().appendonly_always(), files(right.clone())).await;
    let bench = Bench::shared(&server.url(&ca(&authority)), &namespace()).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let first = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    assert_eq!(first.result_within(SOON).await.unwrap(), 2);

    let [kept_cert, kept_key] = [&right.cert, &right.key].map(|file| fs::read(file).unwrap());
    let expired = authority.expired_server();
    fs::copy(expired.cert, &right.cert).unwrap();
    fs::copy(expired.key, &right.key).unwrap();
    server.redis().restart();
    let client = bench.client.clone();
    let submit = tokio::spawn(async move { client.submit(Double { number: 2 }.call()).await });
    let mut problem = None;
    eventually("a call fails because of the certificate", SOON, async || {
        problem = bench.client.inspector().queues().await.err();
        problem.as_ref().is_some_and(|problem| problem.to_string().contains("expired"))
    })
    .await;
    assert!(problem.unwrap().is_unavailable());
    fs::write(&right.cert, kept_cert).unwrap();
    fs::write(&right.key, kept_key).unwrap();
    server.redis().restart();
    let second = submit.await.unwrap().unwrap();
    assert_eq!(second.result_within(SOON).await.unwrap(), 4);
    worker.stop().await;
}

/// Starts a TLS front with a proxy behind it, so that a test can disturb the connection.
async fn disturbed(authority: &Authority) -> (RedisServer, FaultProxy, TlsFront, String) {
    let redis = RedisServer::start();
    let proxy = FaultProxy::start(&redis.url()).await;
    let front = TlsFront::start(&proxy.url(), &files(authority.server())).await;
    let url = format!("rediss://localhost:{}/?{}", front.port(), ca(authority));
    (redis, proxy, front, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_link_of_tls_is_waited_for_and_a_silent_one_is_given_up() {
    const MUCH: usize = 2_000_000;
    const SECONDS: u64 = 11;
    let authority = Authority::new();
    let (redis, proxy, _front, url) = disturbed(&authority).await;
    let bench = Bench::shared(&url, &namespace()).await;
    let broker = bench.client.broker().separate("test");
    broker.ping().await.unwrap();
    let near = Bench::shared(&redis.url(), bench.namespace()).await;
    let worker = near.start(near.worker().result_limit(2 * MUCH).task_type::<Long>());
    let handle = bench.client.submit(Long { bytes: MUCH }.call()).await.unwrap();
    eventually("the task has run", SOON, async || {
        view(&near, handle.id()).await.state == TaskState::Success
    })
    .await;
    proxy.rate(Way::Down, MUCH / usize::try_from(SECONDS).unwrap());
    let begun = Instant::now();
    assert_eq!(handle.result_within(3 * SOON).await.unwrap().len(), MUCH);
    assert!(begun.elapsed() > Duration::from_secs(SECONDS - 2), "it took {:?}", begun.elapsed());
    proxy.black_hole(Way::Both);
    let begun = Instant::now();
    broker.ping().await.unwrap_err();
    let took = begun.elapsed().as_secs();
    assert!((7..15).contains(&took), "given up after {took} s");
    worker.stop().await;
}
