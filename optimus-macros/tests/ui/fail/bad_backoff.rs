//! A back-off is a formula in quotes, or a function of the right type.

fn wrong(failed: u32) -> u64 {
    u64::from(failed)
}

#[optimus::task(backoff = "exponentail")]
async fn slip() {}

#[optimus::task(backoff = "fixed(base = 1s)")]
async fn other_parameter() {}

#[optimus::task(backoff = "linear(base = 5s, jitter = 20)")]
async fn bad_share() {}

#[optimus::task(backoff = 5)]
async fn number() {}

#[optimus::task(backoff = wrong)]
async fn wrong_function() {}

#[optimus::task(on_lost = "ignore")]
async fn on_lost() {}

#[optimus::task(backoff = "expo")]
async fn beginning() {}

#[optimus::task(backoff = "fixed(2s)")]
async fn without_name() {}

fn main() {}
