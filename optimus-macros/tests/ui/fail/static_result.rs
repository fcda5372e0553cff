//! A result is read back from Redis, so it cannot be `'static`.

#[optimus::task]
async fn in_result() -> Result<&'static str, std::io::Error> {
    Ok("done")
}

#[optimus::task]
async fn in_vec() -> Result<Vec<&'static str>, &'static str> {
    Ok(vec!["done"])
}

fn main() {
    let _ = in_result().perform_async();
}
