//! The result can be an alias, and its error any type that converts into a boxed error.
#![deny(warnings)]

type BoxResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[optimus::task]
async fn with_anyhow(fail: bool) -> anyhow::Result<Vec<u8>> {
    anyhow::ensure!(!fail, "asked to fail");
    Ok(vec![1])
}

#[optimus::task]
async fn with_box() -> BoxResult<String> {
    Err("no".into())
}

#[optimus::task(result_ttl = 0)]
async fn with_control_word() -> Result<(), optimus::Snooze> {
    Err(optimus::Snooze::new(std::time::Duration::from_secs(1)))
}

#[optimus::task]
async fn with_tuple() -> optimus::Result<(u8, Option<String>), std::io::Error> {
    Ok((1, None))
}

#[tokio::main]
pub(super) async fn main() {
    assert_eq!(with_anyhow(false).perform_inline().await.unwrap(), [1]);
    let error = with_anyhow(true).perform_inline().await.unwrap_err();
    assert_eq!(error.to_string(), "asked to fail");
    with_box().perform_inline().await.unwrap_err();
    assert!(with_control_word().perform_inline().await.unwrap_err().is::<optimus::Snooze>());
    assert_eq!(with_tuple().perform_inline().await.unwrap(), (1, None));
}
