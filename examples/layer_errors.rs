//! A layer that captures errors as Sentry does. It captures each failed attempt, with the task and
//! its user.

use std::io;

use optimus::{Client, Context, End, Layer, Outcome, Worker};

struct Capture;

impl Layer for Capture {
    /// Runs at the end of each attempt, also after a timeout or a panic.
    async fn ended(&self, ctx: &Context, end: &End) {
        let Some(error) = end.error() else { return };
        let level = if matches!(end.outcome, Outcome::Dead(_)) { "error" } else { "warning" };
        let (task, attempt, user) = (ctx.task(), ctx.attempt(), ctx.header("user"));
        println!("{level}: {task}, attempt {attempt}, user {user:?}: {}", error.message);
    }
}

#[optimus::task(max_retry = 1, backoff = "fixed(wait = 100ms)")]
async fn charge(order: u64) -> io::Result<()> {
    Err(io::Error::other(format!("order {order}: the bank does not answer")))
}

#[tokio::main]
async fn main() -> optimus::Result<()> {
    let client = Client::connect("memory://errors").await?;
    let task = client.submit(charge(7).header("user", "ann")).await?;
    let worker = Worker::builder("memory://errors").layer(Capture).quiet().build()?;
    worker.run_until(task.ended()).await??;
    Ok(())
}
