//! A call without a verb, and a verb without `.await`, submit nothing: the compiler warns.

#![deny(unused_must_use)]

#[optimus::task]
async fn send(to: String) {
    let _ = to;
}

async fn submit() {
    send("Ann".to_owned());
    send("Ann".to_owned()).perform_async();
}

fn main() {
    let _ = submit();
}
