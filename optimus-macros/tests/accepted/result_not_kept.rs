//! With `result_ttl = 0` the result is dropped. The result's type needs no serde and can be
//! private.
#![deny(warnings)]

struct Connection;

#[optimus::task(result_ttl = 0)]
pub async fn connect() -> Result<Connection, String> {
    Ok(Connection)
}

#[optimus::task(result_ttl = "0s")]
pub fn connect_blocking(fail: bool) -> Result<Connection, String> {
    if fail { Err("no".to_owned()) } else { Ok(Connection) }
}

#[tokio::main]
pub(super) async fn main() {
    let () = connect().perform_inline().await.unwrap();
    let () = connect_blocking(false).perform_inline().await.unwrap();
    connect_blocking(true).perform_inline().await.unwrap_err();
}
