//! Names are part of Redis keys.

#[optimus::task(queue = "")]
async fn empty() {}

#[optimus::task(queue = "a:b")]
async fn colon() {}

#[optimus::task(name = 7)]
async fn number() {}

#[optimus::task]
async fn größe() {}

#[optimus::task(crate = "not a path")]
async fn path() {}

fn main() {}
