//! A plain `fn` is a task, too: it runs on its own thread, and can use data and context there.
#![deny(warnings)]

use std::thread::{self, ThreadId};

use optimus::{Context, Data};

#[optimus::task(max_retry = 0)]
fn thumbnail(path: String, #[data] caller: ThreadId, ctx: Context) -> Result<usize, String> {
    assert_ne!(thread::current().id(), caller);
    assert!(!ctx.is_cancelled());
    if path.is_empty() { Err("no path".to_owned()) } else { Ok(path.len()) }
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn main() {
    let data = Data::new().with(thread::current().id());
    let length = thumbnail("a.png".to_owned()).perform_inline_with(data.clone()).await.unwrap();
    assert_eq!(length, 5);
    let error = thumbnail(String::new()).perform_inline_with(data).await.unwrap_err();
    assert_eq!(error.to_string(), "no path");
}
