//! A review desk over HTTP: three reviewers take photos from a pool and decide about them. One of
//! them leaves without a word, and another one keeps a photo for too long; their photos go to
//! others.
//!
//! `cargo run --example review_desk` needs no server.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, ensure};
use optimus::Client;
use optimus_dispenser::{Settings, Tokens, router};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// How long a reviewer may be silent, and keep a photo. A real desk uses minutes.
const HOLD: Duration = Duration::from_secs(2);
const HOLD_MAX: Duration = Duration::from_secs(3);

/// One of the programs that use the desk, with its token.
struct Caller {
    desk: SocketAddr,
    token: &'static str,
}

impl Caller {
    /// Sends a verb and returns the answer.
    async fn post(&self, verb: &str, body: Value) -> anyhow::Result<Value> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.desk).await?;
        let request = format!(
            "POST /dispensers/photos/{verb} HTTP/1.1\r\nHost: desk\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        ensure!(head.starts_with("HTTP/1.1 200"), "{verb} was refused: {body}");
        Ok(serde_json::from_str(body)?)
    }

    /// Lets the reviewer hold up to so many photos, and returns them.
    async fn assign(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let held = self.post("assign", json!({ "count": count })).await?;
        let ids = held["items"].as_array().context("no items")?.iter();
        Ok(ids.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect())
    }

    /// Reports a decision. Returns whether it counts.
    async fn decide(&self, photo: &str) -> anyhow::Result<bool> {
        let settled = self.post("done", json!({ "items": [photo] })).await?;
        Ok(settled["accepted"] == json!([photo]))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("OPTIMUS_URL").unwrap_or_else(|_| "memory://review-desk".to_owned());
    let client = Client::connect(&url).await?;
    let photos = client.dispenser("photos").hold(HOLD).hold_max(HOLD_MAX);

    // In production, tokens are random and come from the environment.
    let tokens = Tokens::new();
    tokens.add_operator("uploads", "uploads-0123456789abcdef")?;
    for (name, token) in [
        ("ann", "ann-0123456789abcdef"),
        ("bob", "bob-0123456789abcdef"),
        ("eve", "eve-0123456789abcdef"),
    ] {
        tokens.add_assignee(name, token)?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let desk = listener.local_addr()?;
    let app = router(Settings::new(tokens).serve(photos.clone()));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let uploads = Caller { desk, token: "uploads-0123456789abcdef" };
    let ann = Caller { desk, token: "ann-0123456789abcdef" };
    let bob = Caller { desk, token: "bob-0123456789abcdef" };
    let eve = Caller { desk, token: "eve-0123456789abcdef" };

    let mut items: Vec<Value> = (1..=8).map(|number| json!(format!("photo-{number}"))).collect();
    items.push(json!({ "id": "reported-photo", "priority": 10 }));
    uploads.post("add", json!({ "items": items })).await?;

    println!("ann takes {}", ann.assign(3).await?.join(", "));
    println!("bob takes {}, and leaves without a word", bob.assign(3).await?.join(", "));
    let kept = ann.assign(3).await?;
    for photo in &kept[..2] {
        ensure!(ann.decide(photo).await?, "ann holds it");
    }
    println!("ann has decided about {}, and keeps {}", kept[..2].join(", "), kept[2]);

    // Ann goes on calling, so she keeps her place at the desk, but not the photo.
    for _ in 0..5 {
        sleep(HOLD_MAX / 4).await;
        ann.post("check", json!({})).await?;
    }
    let rest = eve.assign(20).await?;
    println!("eve takes {}", rest.join(", "));
    ensure!(!ann.decide(&kept[2]).await?, "eve holds it");
    println!("the decision of ann about {} comes too late", kept[2]);
    for photo in &rest {
        ensure!(eve.decide(photo).await?, "eve holds it");
    }

    // The pool is made from the source of truth again. Nothing that is done comes back.
    let rebuild = photos.rebuild().await?;
    rebuild.add((1..=8).map(|number| format!("photo-{number}"))).await?;
    rebuild.finish().await?;
    let left = photos.peek().await?;
    println!("{} photos are left", left.open + left.assigned);
    Ok(())
}
