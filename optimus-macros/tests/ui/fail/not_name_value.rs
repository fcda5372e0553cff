//! Options are written `name = value`.

#[optimus::task("mail")]
async fn bare() {}

#[optimus::task(queue("mail"), max_retry = 3)]
async fn called() {}

#[optimus::task(quue("mail"))]
async fn called_wrong() {}

#[optimus::task(queue: "mail")]
async fn colon() {}

#[optimus::task(7)]
async fn number() {}

#[optimus::task(= 7)]
async fn no_name() {}

fn main() {
    let _ = bare().perform_async();
    let _ = called().perform_async();
}
