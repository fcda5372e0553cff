//! What attackers try: forged sites, hosts, cookies and texts.

use optimus_console::Console;
use serde_json::json;

use crate::{
    client::Browser,
    stage::{Served, Stage, call},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_act_of_a_foreign_page_is_refused_whatever_headers_it_has() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let (open, guarded) = (stage.open(), stage.guarded());
    let signed_in = guarded.signed_in("ann").await;
    for own in [&open.browser, &signed_in] {
        let bare = own.without("sec-fetch-site");
        let foreign = [
            own.with("sec-fetch-site", "cross-site"),
            own.with("sec-fetch-site", "same-site"),
            own.with("sec-fetch-site", "none"),
            own.with("sec-fetch-site", ""),
            own.with("sec-fetch-site", "cross-site")
                .with("origin", &format!("http://{}", own.address)),
            bare.clone(),
            bare.with("origin", "null"),
            bare.with("origin", "http://evil.example"),
            bare.with("origin", &format!("http://{}.evil.example", own.address)),
            bare.with("origin", &format!("ftp://{}", own.address)),
            bare.with("origin", "http://127.0.0.1:1"),
            bare.with("referer", &format!("http://{}/", own.address)),
        ];
        for browser in foreign {
            let answer = browser.act("queues/mail/pause", &json!({})).await;
            answer.fails(403, "forbidden");
        }
        let mut twice = own.clone();
        twice.headers.push(("sec-fetch-site".into(), "cross-site".into()));
        twice.act("queues/mail/pause", &json!({})).await.fails(403, "forbidden");
        let form = own.with("content-type", "text/plain");
        form.act("queues/mail/pause", &json!({})).await.fails(400, "invalid");
        assert!(!stage.client.inspector().counts("mail").await.unwrap().paused);
        let origin = bare.with("origin", &format!("http://{}", own.address));
        origin.act("queues/mail/pause", &json!({})).await.is(204);
        own.act("queues/mail/resume", &json!({})).await.is(204);
    }
    // A form can't sign a browser in as somebody else either.
    let token = json!({ "token": "the token of ann" });
    let foreign = guarded.browser.with("sec-fetch-site", "cross-site");
    foreign.act("sign-in", &token).await.fails(403, "forbidden");
    foreign.act("sign-out", &json!({})).await.fails(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_name_that_leads_to_this_machine_is_refused() {
    let stage = Stage::new().await;
    let served = stage.open();
    let port = served.browser.address.port();
    let foreign = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        "0.0.0.0".into(),
        "10.0.0.1".into(),
        "127.0.0.1@evil.example".into(),
        String::new(),
    ];
    for host in foreign {
        for path in ["/", "/app.js", "/api/v1/overview"] {
            let answer = served.browser.with("host", &host).get(path).await;
            assert!([400, 403].contains(&answer.status), "{host} {path}: {answer:?}");
        }
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), "127.0.0.1".into()] {
        served.browser.with("host", &host).get("/api/v1/session").await.is(200);
    }
    for header in ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-host"] {
        let answer = served.browser.with(header, "10.0.0.1").get("/api/v1/session").await;
        answer.fails(403, "forbidden");
    }
    // A proxy without settings sends HTTP/1.0, names this machine as the host, and adds no header.
    let by_proxy = format!("GET /api/v1/session HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\n\r\n");
    served.browser.raw(by_proxy.as_bytes()).await.fails(403, "forbidden");
    let named: Console = stage.console().host("tasks.example.com");
    let named = Served::of(named.auth(optimus_console::Auth::Token(crate::stage::secrets())));
    named.bearer("ann").get("/api/v1/session").await.fails(403, "forbidden");
    named.bearer("ann").with("host", "Tasks.example.com").get("/api/v1/session").await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_can_not_be_forged_or_used_after_the_sign_out() {
    let stage = Stage::new().await;
    let served = stage.guarded();
    let wrong = json!({ "token": "the token of nobody" });
    served.browser.act("sign-in", &wrong).await.fails(401, "unauthorized");
    let token = json!({ "token": "the token of ann" });
    let answer = served.browser.act("sign-in", &token).await.is(204);
    let cookie = answer.header("set-cookie").to_owned();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("token of ann"), "{cookie}");
    let https = served.browser.with("x-forwarded-proto", "https").act("sign-in", &token).await;
    assert!(https.header("set-cookie").ends_with("; Secure"), "{https:?}");
    let pair = cookie.split(';').next().unwrap();
    let ann = served.browser.with("cookie", pair);
    assert_eq!(ann.look("session").await["identity"], "ann");
    let (name, id) = pair.split_once('=').unwrap();
    for forged in [
        format!("{name}="),
        format!("{name}={}", "0".repeat(64)),
        format!("{name}={}", &id[..63]),
        format!("{name}={}", id.to_uppercase() + "x"),
        format!("{name}=the token of ann"),
        format!("{name}={id}; {name}=x"),
        format!("session={id}"),
    ] {
        let browser = served.browser.with("cookie", &forged);
        browser.get("/api/v1/session").await.fails(401, "unauthorized");
    }
    let again = served.signed_in("ann").await;
    ann.act("sign-out", &json!({})).await.is(204);
    ann.get("/api/v1/session").await.fails(401, "unauthorized");
    ann.act("queues/mail/pause", &json!({})).await.fails(401, "unauthorized");
    again.look("session").await;
    // Who signs in again in the same browser leaves no session behind.
    again.act("sign-in", &token).await.is(204);
    again.get("/api/v1/session").await.fails(401, "unauthorized");
    // The session of another console is none here.
    let other = stage.guarded();
    let foreign = other.signed_in("ann").await.headers;
    let mut stolen = served.browser.clone();
    stolen.headers = foreign;
    stolen.get("/api/v1/session").await.fails(401, "unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_signed_in_to_consoles_of_two_namespaces_on_one_host() {
    let (shop, bank) = (Stage::new().await, Stage::new().await);
    let (shop, bank) = (shop.guarded(), bank.guarded());
    let cookie = |browser: Browser| browser.headers.last().unwrap().1.clone();
    let cookies = [cookie(shop.signed_in("ann").await), cookie(bank.signed_in("olga").await)];
    let [name, other] = cookies.each_ref().map(|pair| pair.split_once('=').unwrap().0);
    assert_ne!(name, other, "a browser keeps one cookie of a name, for all ports and paths");
    let both = cookies.join("; ");
    for (served, who) in [(&shop, "ann"), (&bank, "olga")] {
        let browser = served.browser.with("cookie", &both);
        assert_eq!(browser.look("session").await["identity"], who);
    }
    shop.browser.with("cookie", &both).act("sign-out", &json!({})).await.is(204);
    bank.browser.with("cookie", &both).look("session").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_stay_texts_in_json_that_no_browser_runs() {
    const HOSTILE: &str =
        "<img src=x onerror=alert(1)>\u{202e}</script>\"'`{{7*7}}\u{2028}\u{0}\r\n";
    let stage = Stage::new().await;
    stage.ended([&*format!("fail: {HOSTILE}"), &*format!("log: {HOSTILE}")]).await;
    let rich = call(HOSTILE).biz_id("<b>").header("x", "<svg onload=alert(1)>").lane("<i>");
    let id = stage.client.submit(rich).await.unwrap().id().to_string();
    let gate = stage.client.gate("mail", optimus::Gate::Queue);
    gate.pause("<script>", HOSTILE).await.unwrap();
    let served = stage.open();
    for path in [
        "overview".to_owned(),
        "queues".into(),
        "queues/mail".into(),
        "queues/mail/tasks?state=dead".into(),
        format!("tasks/{id}"),
        "failures".into(),
        "limits".into(),
        "search?q=%3Cimg%20src%3Dx%3E".into(),
        "queues/%3Cscript%3E".into(),
        "tasks/mail/%3Cscript%3E".into(),
        "nothing/%3Cscript%3E".into(),
    ] {
        let answer = served.browser.get(&format!("/api/v1/{path}")).await;
        assert_eq!(answer.header("content-type"), "application/json", "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        let csp = answer.header("content-security-policy");
        assert!(csp.starts_with("default-src 'none'"), "{path}: {csp}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        answer.json();
    }
    let page = served.browser.look("queues/mail/tasks?state=ready").await;
    assert_eq!(page["rows"][0]["headers"]["x"], "<svg onload=alert(1)>");
    let task = served.browser.look(&format!("tasks/{id}")).await;
    let arguments: serde_json::Value =
        serde_json::from_str(task["arguments"]["text"].as_str().unwrap()).unwrap();
    assert!(arguments.to_string().contains("onerror"), "{arguments}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out_of_the_files_of_the_page() {
    let stage = Stage::new().await;
    let served = stage.open();
    for path in [
        "/../Cargo.toml",
        "/..%2fCargo.toml",
        "/%2e%2e/Cargo.toml",
        "/%2e%2e%2fCargo.toml",
        "/....//Cargo.toml",
        "/..\\Cargo.toml",
        "/..%5cCargo.toml",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/app.js%00.html",
        "/app.js/",
        "/./app.js",
        "/src/lib.rs",
    ] {
        let answer = served.browser.get(path).await;
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.body.contains("[package]") && !answer.body.contains("root:"), "{path}");
    }
    for id in ["..%2f..", "a%00b", "%F0%9F%98%80", "a%20b", "%0d%0aset-cookie:x"] {
        served.browser.get(&format!("/api/v1/queues/{id}")).await.fails(400, "invalid");
        served.browser.get(&format!("/api/v1/tasks/mail/{id}")).await.fails(400, "invalid");
    }
}
