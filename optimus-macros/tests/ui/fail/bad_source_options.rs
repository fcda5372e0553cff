//! The options of a source have bounds, and its ranges of failures have no gaps.

use optimus::{Found, Page};

type Rows = Result<Vec<Found<i64>>, String>;

#[optimus::source]
async fn no_time(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", slices = 1025)]
async fn too_many(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = 0)]
async fn restless(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", page = 0)]
async fn no_rows(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", tables = ["a"])]
async fn synonym(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", demote(1..=5 = "30s", 7..=9 = "60s"))]
async fn gap(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", demote(1..=5 = "30s"), attempts = 16)]
async fn short(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", demote(1..5 = "30s"))]
async fn half_open(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", demote = "30s")]
async fn no_ranges(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", archive(after = "30d"))]
async fn no_function(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", before = |row| true)]
async fn closure(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", every = "4s")]
async fn again(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source("3s")]
async fn bare(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

#[optimus::source(every = "3s", demote(1..=5 = "10s", 6.. = "60s"), attempts = 3)]
async fn above_attempts(_: Page<i64>) -> Rows {
    Ok(Vec::new())
}

fn main() {}
