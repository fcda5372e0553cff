//! A parameter cannot have these attributes.

#[optimus::task]
async fn data_with_words(#[data(pool)] pool: String) {
    let _ = pool;
}

#[optimus::task]
async fn data_with_serde(
    #[data]
    #[serde(default)]
    pool: String,
) {
    let _ = pool;
}

#[optimus::task]
async fn conditional(#[cfg(unix)] id: u64) {
    let _ = id;
}

fn main() {
    let _ = data_with_words().perform_async();
    let _ = data_with_serde().perform_async();
    let _ = conditional(1).perform_async();
}
