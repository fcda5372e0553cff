//! Who gets in, and what each role may do.

use std::net::{IpAddr, Ipv4Addr};

use optimus::{PrerequisiteFailure, TaskState};
use optimus_console::{
    Auth, Console, ConsoleError, ConsoleListener, Identity, Payloads, Role, Secrets, TrustedHeader,
};
use optimus_testkit::eventually;
use serde_json::{Value, json};

use crate::stage::{SOON, Served, Stage, call, secrets};

#[tokio::test(flavor = "multi_thread")]
async fn a_console_without_authentication_listens_on_this_machine_only() {
    let stage = Stage::new().await;
    for address in ["0.0.0.0:0", "[::]:0"] {
        let Ok(listener) = ConsoleListener::bind(address.parse().unwrap()) else { continue };
        let Err(problem) = stage.console().serve(listener) else { panic!("{address}") };
        assert!(matches!(problem, ConsoleError::Open(_)), "{problem}");
        assert!(problem.to_string().contains("no authentication"), "{problem}");
    }
    let everywhere = ConsoleListener::bind("0.0.0.0:0".parse().unwrap()).unwrap();
    let guarded = stage.console().auth(Auth::Token(secrets()));
    assert!(guarded.serve(everywhere).is_ok());
    let nobody = stage.console().auth(Auth::Token(Secrets::new()));
    assert!(matches!(nobody.router(), Err(ConsoleError::NoSecret)));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_is_open_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (stage, folder) = (Stage::new().await, tempfile::tempdir().unwrap());
    let path = folder.path().join("console.sock");
    for _ in 0..2 {
        // The second time, the socket of the first is left over.
        let listener = ConsoleListener::bind_unix(&path).unwrap();
        let serving = tokio::spawn(stage.console().serve(listener).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let answer = over_socket(&path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        serving.abort();
        let _ = serving.await;
    }
}

#[cfg(unix)]
async fn over_socket(path: &std::path::Path) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::UnixStream::connect(path).await.unwrap();
    let request = b"GET /api/v1/session HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_router_without_authentication_needs_to_know_who_connects() {
    let stage = Stage::new().await;
    let app = axum::Router::new().nest("/admin", stage.console().router().unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let browser = crate::client::Browser::new(listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let answer = browser.get("/admin/api/v1/session").await;
    answer.fails(403, "forbidden");
    assert!(answer.body.contains("into_make_service_with_connect_info"), "{}", answer.body);
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_do_what_the_roles_before_it_may_and_more() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    stage.furnish().await;
    let served = stage.guarded();
    let ids = |act: &str| json!({ "act": act, "ids": [filled.dead.to_string()] });
    let acts: [(&str, Value, Role); 8] = [
        ("queues/mail/pause", json!({}), Role::Operator),
        ("queues/mail/resume", json!({}), Role::Operator),
        ("tasks/act", ids("retry"), Role::Operator),
        ("tasks/act", ids("cancel"), Role::Operator),
        ("tasks/act", ids("run_now"), Role::Operator),
        ("tasks/act", ids("delete"), Role::Admin),
        ("processes/a-1-0a0b0c0d/act", json!({ "act": "stop" }), Role::Operator),
        ("things/schedules/act", json!({ "name": "digest", "act": "pause" }), Role::Operator),
    ];
    for (path, body, least) in &acts {
        for (name, role) in [("vera", Role::Viewer), ("olga", Role::Operator), ("ann", Role::Admin)]
        {
            let answer = served.bearer(name).act(path, body).await;
            if role < *least {
                answer.fails(403, "forbidden");
            } else {
                assert!([200, 204, 404].contains(&answer.status), "{path} {name} {answer:?}");
            }
        }
        served.browser.act(path, body).await.fails(401, "unauthorized");
    }
    assert_eq!(stage.state(&filled.dead).await, optimus::TaskState::Forgotten);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_without_a_token_sees_more_than_the_page_that_asks_for_it() {
    let stage = Stage::new().await;
    let served = stage.guarded();
    for path in [
        "session",
        "overview",
        "queues",
        "queues/mail",
        "queues/mail/tasks",
        "queues/mail/stats",
        "queues/mail/history",
        "stats",
        "tasks/mail/01890a5d-ac96-774b-bcce-b302099a8057",
        "failures",
        "processes",
        "running",
        "search?q=x",
        "redis",
        "lanes",
        "limits",
        "groups",
        "schedules",
        "shards",
        "sources",
        "dispensers",
        "audit",
        "events",
    ] {
        let path = format!("/api/v1/{path}");
        served.browser.get(&path).await.fails(401, "unauthorized");
        let wrong = served.browser.with("authorization", "Bearer the token of nobody");
        let wrong = wrong.get(&path).await;
        wrong.fails(401, "unauthorized");
        let body = wrong.json();
        let message = body["message"].as_str().unwrap();
        assert!(message.starts_with("this token is not known"), "{message}");
        assert_eq!(body["auth"], "token", "a page knows how to sign in");
    }
    served.browser.get("/").await.is(200);
    served.browser.get("/app.js").await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_sees_and_changes_only_its_queues() {
    let stage = Stage::new().await;
    let mut ids = Vec::new();
    for queue in ["mail", "tenant-a", "tenant-b"] {
        ids.push(stage.client.submit(call("x").queue(queue)).await.unwrap().id().clone());
    }
    let served = stage.guarded();
    let tina = served.bearer("tina");
    assert_eq!(tina.look("session").await["queues"], json!(["tenant-*"]));
    let overview = tina.look("overview").await;
    assert_eq!((&overview["counts"]["ready"], &overview["queue_count"]), (&json!(2), &json!(2)));
    assert!(!overview.to_string().contains("mail"), "{overview}");
    assert!(!tina.look("queues").await.to_string().contains("mail"));
    assert!(!tina.look("search?q=mail").await["hits"].to_string().contains("mail"));
    let uuid = ids[0].to_string().split('/').nth(1).unwrap().to_owned();
    assert_eq!(tina.look(&format!("search?q={uuid}")).await["hits"], json!([]));
    for path in [
        "queues/mail".to_owned(),
        "queues/mail/tasks".into(),
        "queues/mail/stats".into(),
        "queues/mail/history".into(),
        format!("tasks/mail/{uuid}"),
        "failures?queue=mail".into(),
        "running?queue=mail".into(),
        "limits?queue=mail".into(),
        "events?queue=mail".into(),
        "audit".into(),
        "shards".into(),
        "sources".into(),
        "dispensers".into(),
    ] {
        tina.get(&format!("/api/v1/{path}")).await.fails(403, "forbidden");
    }
    tina.act("queues/mail/pause", &json!({})).await.fails(403, "forbidden");
    // One foreign id spoils the request, and nothing is done.
    let both = json!({ "act": "cancel", "ids": [ids[1].to_string(), ids[0].to_string()] });
    tina.act("tasks/act", &both).await.fails(403, "forbidden");
    assert_eq!(stage.state(&ids[1]).await, optimus::TaskState::Ready);
    tina.act("queues/tenant-a/pause", &json!({})).await.is(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_task_waits_tells_nothing_of_tasks_in_other_queues() {
    let stage = Stage::new().await;
    let hidden = stage.client.submit(call("x").queue("mail")).await.unwrap();
    let between = call("x").queue("tenant-b").after(&hidden);
    let between = stage.client.submit(between).await.unwrap();
    let waits = stage.submit(call("x").queue("tenant-a").after(&between)).await;
    let tina = stage.guarded();
    let tina = tina.bearer("tina");
    let mut told = Vec::new();
    for path in [format!("tasks/{waits}"), "queues/tenant-a".to_owned()] {
        let explain = tina.look(&path).await["explain"].to_string();
        assert!(explain.contains("tenant-b/"), "{path}: {explain}");
        told.extend(explain.contains("mail/").then_some(explain));
    }
    assert_eq!(told, [""; 0]);
    let through = call("x").queue("mail").after(&between);
    let through = stage.client.submit(through).await.unwrap();
    let far = stage.submit(call("x").queue("tenant-d").after(&through)).await;
    for path in [format!("tasks/{far}"), "queues/tenant-d".to_owned()] {
        let explain = tina.look(&path).await["explain"].to_string();
        assert!(!explain.contains("mail/"), "{path}: {explain}");
    }
    let direct = call("x").queue("tenant-c").after(&hidden);
    let direct = stage.submit(direct).await;
    let explain = &tina.look(&format!("tasks/{direct}")).await["explain"];
    let told = "it waits for 1 task of a queue that you do not see";
    assert!(explain.to_string().contains(told), "{explain}");
    let explain = &tina.look("queues/tenant-c").await["explain"];
    assert!(!explain.to_string().contains("mail/"), "{explain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_no_prerequisite_in_a_queue_of_others() {
    let stage = Stage::new().await;
    let hidden = stage.client.submit(call("x").queue("mail")).await.unwrap();
    let waits = call("x").queue("tenant-a").after(&hidden);
    let waits = waits.on_prerequisite_failure(PrerequisiteFailure::Cancel);
    let id = stage.submit(waits).await;
    hidden.cancel().await.unwrap();
    let has_ended = async || stage.state(&id).await.is_terminal();
    let wait = eventually("it ends, too", SOON, has_ended);
    stage.worker_of(["mail", "tenant-a"]).run_until(wait).await.unwrap();
    let ended = stage.state(&id).await;
    let served = stage.guarded();
    let (tina, ann) = (served.bearer("tina"), served.bearer("ann"));
    let list = format!("queues/tenant-a/tasks?state={ended}");
    for path in [format!("tasks/{id}"), list] {
        let told = tina.look(&path).await.to_string();
        assert!(!told.contains("mail/") && told.contains("that you do not see"), "{told}");
        let told = ann.look(&path).await.to_string();
        assert!(told.contains(&format!("the prerequisite {}", hidden.id())), "{told}");
    }
    let found = tina.look(&format!("queues/tenant-a/tasks?state={ended}&text=mail%2F")).await;
    assert_eq!(found["rows"], json!([]), "nobody finds it out by a search");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_of_a_session_has_the_causes_of_its_queues_however_many_die_elsewhere() {
    let stage = Stage::new().await;
    let served = stage.guarded();
    let queues = ["a", "b", "c", "d", "e", "tenant-a"];
    for queue in queues {
        for _ in 0..if queue == "tenant-a" { 1 } else { 2 } {
            let call = call(&format!("fail: {queue} is down")).max_retry(0);
            stage.submit(call.queue(queue)).await;
        }
    }
    let are_dead = async || {
        let inspector = stage.client.inspector();
        let overview = inspector.overview(&inspector.queues().await.unwrap()).await.unwrap();
        overview.iter().map(|queue| queue.counts.dead).sum::<u64>() == 11
    };
    let ran = stage.worker_of(queues).run_until(eventually("all are dead", SOON, are_dead));
    ran.await.unwrap();
    for path in ["overview", "search?q=is+down"] {
        let own = served.bearer("tina").look(path).await.to_string();
        assert!(own.contains("tenant-a is down") && !own.contains("e is down"), "{path}: {own}");
        let all = served.bearer("ann").look(path).await.to_string();
        assert!(all.contains("e is down"), "{path}: {all}");
        assert_eq!(all.contains("tenant-a is down"), path != "overview", "{path}: {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_finds_a_biz_id_in_its_queues_however_many_others_there_are() {
    let stage = Stage::new().await;
    let mine = stage.submit(call("hang").queue("tenant-a").biz_id("o-17")).await;
    let others = (0..500).map(|number| call("x").queue(format!("mail-{number}")));
    stage.client.submit_all(others).await.unwrap();
    let served = stage.guarded();
    let tina = served.bearer("tina");
    let hits = async {
        let runs = async || stage.state(&mine).await == TaskState::Working;
        eventually("it runs", SOON, runs).await;
        let hits = tina.look("search?q=o-17").await["hits"].to_string();
        stage.client.handle::<Value>(mine.clone()).cancel().await.unwrap();
        hits
    };
    let hits = stage.worker_of(["tenant-a"]).run_until(hits).await.unwrap();
    assert!(hits.contains(&mine.to_string()), "{hits}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_a_password_are_asked_for_by_the_browser() {
    let stage = Stage::new().await;
    let served = Served::of(stage.console().auth(Auth::Basic(secrets())));
    let answer = served.browser.get("/").await.is(401);
    assert!(answer.header("www-authenticate").starts_with("Basic "), "{answer:?}");
    let basic = |text: &str| served.browser.with("authorization", &format!("Basic {text}"));
    // ann:the token of ann
    let ann = basic("YW5uOnRoZSB0b2tlbiBvZiBhbm4=");
    assert_eq!(ann.look("session").await["identity"], "ann");
    // bob:the token of ann
    basic("Ym9iOnRoZSB0b2tlbiBvZiBhbm4=").get("/api/v1/session").await.fails(401, "unauthorized");
    for broken in ["", "x", "YW5u", "====", "é"] {
        basic(broken).get("/api/v1/session").await.fails(401, "unauthorized");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_is_believed_if_a_trusted_proxy_sends_it() {
    let stage = Stage::new().await;
    let trusted = |proxy: Ipv4Addr| {
        let header = TrustedHeader::new("x-user", [IpAddr::V4(proxy)]).unwrap();
        let header = header.user(Identity::new("ann", Role::Admin)).others(Role::Viewer);
        Served::of(stage.console().auth(Auth::Header(header)))
    };
    let served = trusted(Ipv4Addr::LOCALHOST);
    let ann = served.browser.with("x-user", "ann");
    assert_eq!(ann.look("session").await["role"], "admin");
    assert_eq!(served.browser.with("x-user", "bob").look("session").await["role"], "viewer");
    let nobody = served.browser.get("/api/v1/session").await;
    assert_eq!(nobody.json()["auth"], "header", "a page knows that no token helps");
    nobody.fails(401, "unauthorized");
    let mut twice = ann.clone();
    twice.headers.push(("x-user".into(), "bob".into()));
    twice.get("/api/v1/session").await.fails(401, "unauthorized");
    let other = trusted(Ipv4Addr::new(10, 0, 0, 1));
    other.browser.with("x-user", "ann").get("/api/v1/session").await.fails(401, "unauthorized");
    assert!(TrustedHeader::new("x user", []).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_the_program_decides_and_its_panic_lets_nobody_in() {
    let stage = Stage::new().await;
    let auth = Auth::custom(|parts| match parts.headers.get("x-user")?.to_str().ok()? {
        "panic" => panic!("the function has a fault"),
        "block" => {
            std::thread::sleep(std::time::Duration::from_secs(8));
            None
        }
        name => Some(Identity::new(name, Role::Operator)),
    });
    let served = Served::of(stage.console().auth(auth));
    let user = |name: &str| served.browser.with("x-user", name);
    assert_eq!(user("ann").look("session").await["identity"], "ann");
    for name in ["panic", "block"] {
        user(name).get("/api/v1/session").await.fails(401, "unauthorized");
    }
    assert_eq!(user("ann").look("session").await["identity"], "ann");
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_hidden_with_authentication_and_shown_to_roles_that_may_see_them() {
    let stage = Stage::new().await;
    let extra = json!({ "password": "hunter2", "n": 9_007_199_254_740_993_u64 });
    let submitted = crate::stage::send_mail("x".to_owned(), extra);
    let id = stage.client.submit(submitted).await.unwrap().id().to_string();
    let console: Console = stage.console().auth(Auth::Token(secrets()));
    let console = console.payloads(Role::Operator, Payloads::Redacted);
    let served = Served::of(console.payloads(Role::Admin, Payloads::Full));
    let shown = async |name: &str| {
        served.bearer(name).look(&format!("tasks/{id}")).await["arguments"].clone()
    };
    let hidden = json!({ "text": "", "hidden": true, "redacted": false, "truncated": false });
    assert_eq!(shown("vera").await, hidden);
    let redacted = shown("olga").await;
    let text = redacted["text"].as_str().unwrap();
    assert!(text.contains("9007199254740993") && !text.contains("hunter2"), "{text}");
    assert_eq!(redacted["redacted"], true);
    assert!(shown("ann").await["text"].as_str().unwrap().contains("hunter2"));
}
