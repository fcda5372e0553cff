//! A call does nothing until a verb, so it cannot be awaited.

#[optimus::task]
async fn send(to: String) {
    let _ = to;
}

async fn submit() -> optimus::Result<()> {
    send("Ann".to_owned()).await;
    send("Ann".to_owned()).await?;
    Ok(())
}

fn main() {
    let _ = submit();
}
