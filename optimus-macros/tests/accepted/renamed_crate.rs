//! The facade can have another path, given plain, in quotes, or as `$crate` by a macro.
#![deny(warnings)]

mod vendor {
    pub use optimus as jobs;
}

#[optimus::task(crate = crate::renamed_crate::vendor::jobs)]
async fn bare(n: u8) -> Result<u8, String> {
    Ok(n)
}

#[optimus::task(crate = "vendor::jobs")]
async fn quoted(n: u8) -> Result<u8, String> {
    Ok(n)
}

macro_rules! wrapped {
    ($name:ident) => {
        #[optimus::task(crate = $crate::renamed_crate::vendor::jobs)]
        async fn $name(n: u8) -> Result<u8, String> {
            Ok(n)
        }
    };
}

wrapped!(by_macro);

#[tokio::main]
pub(super) async fn main() {
    assert_eq!(bare(1).perform_inline().await.unwrap(), 1);
    assert_eq!(quoted(2).perform_inline().await.unwrap(), 2);
    assert_eq!(by_macro(3).perform_inline().await.unwrap(), 3);
}
