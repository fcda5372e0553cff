//! The page and its files.

use std::net::SocketAddr;

use optimus_console::Auth;

use crate::{
    client::Browser,
    stage::{Served, Stage, secrets},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_knows_where_it_is_mounted() {
    let stage = Stage::new().await;
    let console = stage.console();
    let inner = axum::Router::new().nest("/tasks", console.router().unwrap());
    let app =
        axum::Router::new().nest("/admin", inner).nest_service("/ops", console.router().unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let browser = Browser::new(listener.local_addr().unwrap());
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(async move { axum::serve(listener, service).await });
    let moved = browser.get("/admin/tasks").await;
    assert_eq!((moved.status, moved.header("location")), (308, "./tasks/index.html"));
    let page = browser.get("/admin/tasks/index.html").await.is(200);
    assert!(page.body.contains(r#"<base href="/admin/tasks/index.html""#), "{}", page.body);
    let page = browser.get("/ops/").await.is(200);
    assert!(page.body.contains(r#"<base href="/ops/""#), "{}", page.body);
    let moved = browser.get("/ops").await;
    assert_eq!((moved.status, moved.header("location")), (308, "./ops/index.html"));
    browser.get("/admin/tasks/app.js").await.is(200);
    browser.get("/admin/tasks/api/v1/session").await.is(200);
    browser.get("/admin/tasks/nothing.js").await.fails(404, "not_found");
    serving.abort();
    let alone = stage.open();
    let page = alone.browser.get("/").await.is(200);
    assert!(page.body.contains(r#"<base href="/""#), "{}", page.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_of_a_proxy_is_believed_only_if_it_is_trusted() {
    let stage = Stage::new().await;
    let guarded = stage.console().auth(Auth::Token(secrets()));
    let trusting = Served::of(guarded.clone().trust_forwarded_prefix());
    let wary = Served::of(guarded);
    let base = async |browser: &Browser, prefix: &str| {
        let page = browser.with("x-forwarded-prefix", prefix).get("/").await.is(200).body;
        let begin = page.find("<base href=\"").unwrap() + 12;
        page[begin..].split('"').next().unwrap().to_owned()
    };
    assert_eq!(base(&trusting.browser, "/ops/tasks").await, "/ops/tasks/");
    assert_eq!(base(&wary.browser, "/ops/tasks").await, "/");
    for bad in ["//evil.example", "https://evil.example", "ops", "/a\"><script>", "/a b"] {
        assert_eq!(base(&trusting.browser, bad).await, "/", "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_have_their_types_a_tag_and_a_strict_policy() {
    let stage = Stage::new().await;
    let served = stage.open();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/app.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/LICENSES.txt", "text/plain; charset=utf-8"),
    ] {
        let answer = served.browser.get(path).await.is(200);
        assert_eq!(answer.header("content-type"), kind, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(
            answer.header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src \
             'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'",
            "{path}"
        );
    }
    let script = served.browser.get("/app.js").await;
    let tag = script.header("etag").to_owned();
    assert!(tag.len() > 10 && script.header("cache-control") == "no-cache", "{script:?}");
    let again = served.browser.with("if-none-match", &tag).get("/app.js").await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let packed = served.browser.with("accept-encoding", "br, gzip").get("/app.js").await.is(200);
    assert_eq!(packed.header("content-encoding"), "gzip");
    let size = |answer: &crate::client::Answer| -> usize {
        answer.header("content-length").parse().unwrap()
    };
    assert!(size(&packed) * 2 < size(&script), "{} of {}", size(&packed), size(&script));
    assert_eq!(served.browser.send("HEAD", "/app.js", None).await.is(200).body, "");
}
