//! An option of a step that is made of the result of the step before it is set on the step.

use optimus::{BoxError, chain};

#[optimus::task]
async fn load(part: u64) -> Result<u64, BoxError> {
    Ok(part)
}

#[optimus::task(biz_id = "{part}", lane = "{zone}-{part}")]
async fn stored(zone: u64, part: u64) -> Result<u64, BoxError> {
    Ok(zone + part)
}

#[optimus::task(gather = "1s | 5", by = "{parts}")]
async fn counted(parts: Vec<u64>) -> Result<(), BoxError> {
    let _ = parts;
    Ok(())
}

fn main() {
    let _ = chain![load(1), stored(2, _)];
    let _ = chain![load(1), stored(2, _).biz_id(1).max_retry(2)];
    let _ = chain![load(1), counted(_)];
    // These are right.
    let _ = chain![load(1), stored(2, _).biz_id(1).lane("a").max_retry(2)];
    let _ = chain![load(1), stored(_, 2).lane(7)];
    let _ = chain![load(1), counted(_).by("a")];
}
