//! The server beside slow, strange and many clients.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread::sleep,
    time::{Duration, Instant},
};

use optimus_metrics::{Answer, Exposition, Listener, Server, names, parse_address};
use optimus_testkit::http_get;

fn listener() -> Listener {
    Listener::bind(parse_address("127.0.0.1:0").unwrap()).unwrap()
}

fn start() -> Server {
    Server::start(listener(), |path, query| match path {
        "/metrics" => {
            let mut text = Exposition::default();
            text.family(&names::REPORTS_HELD).count(&[], 7);
            Answer::metrics(text)
        }
        "/livez" => Answer::probe(&[]),
        "/readyz" => Answer::probe(&["first".to_owned(), "second".to_owned()]),
        "/scale" => Answer::json(format!("{{\"query\":{query:?}}}")),
        "/panics" => panic!("it can't be made"),
        _ => Answer::not_found("nothing is here"),
    })
    .unwrap()
}

fn slow_client(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
    stream
}

#[test]
fn each_path_has_its_status_and_its_type() {
    let server = start();
    let get = |request: &str| http_get(server.address(), request).unwrap();
    let metrics = get("GET /metrics");
    assert_eq!((metrics.status, metrics.header("content-type")), (200, Exposition::CONTENT_TYPE));
    let seen = optimus_testkit::exposition::read(&metrics.body);
    assert_eq!(seen.value("optimus_reports_held", &[]), Some(7.0));
    assert_eq!((get("GET /livez").status, &*get("GET /livez").body), (200, "ok\n"));
    let ready = get("GET /readyz");
    assert_eq!((ready.status, &*ready.body), (503, "first\nsecond\n"));
    let scale = get("GET /scale?queue=a%20b");
    assert_eq!(scale.header("content-type"), "application/json");
    assert_eq!(scale.body, "{\"query\":\"queue=a%20b\"}");
    assert_eq!(get("GET /nothing").status, 404);
    assert_eq!(get("HEAD /metrics").body, "");
    let refused = get("POST /metrics");
    assert_eq!((refused.status, refused.header("allow")), (405, "GET, HEAD"));
    assert_eq!(get("GET /panics").status, 500);
    assert_eq!(get("GET /livez").status, 200, "the server goes on after a panic");
}

#[test]
fn requests_that_are_none_or_too_long_end_with_their_connection() {
    let server = start();
    let long = format!("GET /{}", "x".repeat(100_000));
    for request in ["nonsense", "GET", &long] {
        let answer = http_get(server.address(), request);
        assert!(answer.as_ref().map_or(true, |answer| answer.status >= 400), "{answer:?}");
    }
    assert_eq!(http_get(server.address(), "GET /livez").unwrap().status, 200);
}

#[test]
fn a_hundred_slow_clients_do_not_keep_a_probe_out_and_lose_their_connections() {
    let server = start();
    let mut slow: Vec<TcpStream> = (0..100).map(|_| slow_client(server.address())).collect();
    for _ in 0..20 {
        let began = Instant::now();
        assert_eq!(http_get(server.address(), "GET /livez").unwrap().status, 200);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    // 64 may be open at once, so the first ones are closed long before their deadline.
    for stream in &mut slow[..36] {
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let open = stream.read(&mut [0; 1]);
        assert!(!matches!(&open, Err(why) if why.kind() == ErrorKind::WouldBlock), "{open:?}");
    }
    // Those that were not closed for others are closed by their deadline.
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let is_late = |why: &std::io::Error| why.kind() == ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(is_late), "{ended:?}");
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "its request was not complete");
    }
}

#[tokio::test]
async fn a_port_in_use_is_refused_and_is_free_again_when_the_server_has_ended() {
    let server = start();
    let address = server.address();
    let open = slow_client(address);
    assert!(Listener::bind(address).is_err());
    server.end().await;
    drop(open);
    // The system may keep the ports of closed connections, which a new listener may reuse.
    let again = Server::start(Listener::bind(address).unwrap(), |_, _| Answer::probe(&[])).unwrap();
    let get = move || http_get(address, "GET /livez").unwrap().status;
    assert_eq!(tokio::task::spawn_blocking(get).await.unwrap(), 200);
    drop(again);
    let began = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10), "a dropped server closes its port");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_request_that_waits_for_an_answer_to_be_made_is_not_pushed_out_by_later_connections() {
    let server = Server::start(listener(), |_, _| {
        sleep(Duration::from_millis(30));
        Answer::probe(&[])
    })
    .unwrap();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        stream
    };
    for _ in 0..5 {
        let _large = ask("/metrics");
        let mut probe = ask("/livez");
        let others: Vec<_> =
            (0..70).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        let mut answer = String::new();
        probe.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(others);
    }
}
