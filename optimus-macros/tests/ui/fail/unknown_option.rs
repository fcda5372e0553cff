//! An unknown option is a typo, a name from another queue, or an unrelated name.

#[optimus::task(time_out = 5)]
async fn slip() {}

#[optimus::task(retries = 5)]
async fn synonym() {}

#[optimus::task(colour = "red")]
async fn other() {}

#[optimus::task(blocking)]
fn flag() {}

#[optimus::task(queue)]
async fn no_value() {}

fn main() {
    let _ = slip().perform_async();
    let _ = synonym().perform_async();
    let _ = other().perform_async();
    let _ = flag().perform_async();
    let _ = no_value().perform_async();
}
