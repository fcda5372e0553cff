//! A call does nothing until a verb, so there is nothing to await.

#[optimus::task]
async fn send(to: String) {
    let _ = to;
}

async fn submit() {
    send("Ann".to_owned()).await;
}

fn main() {
    let _ = submit();
}
