//! A result outlives its attempt, and is read by another program.

static NAME: &str = "a";

#[optimus::task]
async fn name(n: u8) -> Result<&str, String> {
    let _ = n;
    Ok(NAME)
}

#[optimus::task]
async fn opaque() -> Result<impl std::fmt::Display, String> {
    Ok(NAME)
}

fn main() {
    let _ = name(1).perform_async();
    let _ = opaque().perform_async();
}
