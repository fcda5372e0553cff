//! A source is async, takes a page and data, and returns the rows that it has found.

use optimus::{Found, Page};

type Rows = Result<Vec<Found<i64>>, String>;

#[optimus::source(every = "3s")]
fn blocking(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s")]
async fn without_page() -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s")]
async fn with_argument(_: Page<i64>, order: u64) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s")]
async fn by_reference(_: &Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s")]
async fn without_result(_: Page<i64>) {}

#[optimus::source(every = "3s")]
async fn generic<T>(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s")]
struct NoFunction;

fn main() {
    let _ = (blocking(), without_page());
}
