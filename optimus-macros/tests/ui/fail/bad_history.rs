//! A history is kept for whole days, up to a year.

#[optimus::task(history = "36h")]
async fn not_whole() {}

#[optimus::task(history = 0)]
async fn none() {}

#[optimus::task(history = "367d")]
async fn too_long() {}

#[optimus::task(history = 180)]
async fn seconds() {}

#[optimus::task(history = true)]
async fn not_a_time() {}

fn main() {}
