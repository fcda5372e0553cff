//! Docs go to the function that makes calls, lints to both, anything else to the body.
#![deny(warnings, missing_docs, deprecated)]

/// Visible, and documented by its author.
///
/// More words.
#[optimus::task]
#[cfg(not(any()))]
#[allow(unused_variables, reason = "what this test is about")]
#[cfg_attr(all(), doc = "Even more words.")]
#[inline]
pub async fn documented(unused: u8) {}

#[optimus::task]
#[cfg(any())]
#[allow(missing_docs, reason = "what this test is about")]
pub async fn absent(unused: Missing) {}

#[optimus::task]
#[deprecated = "use documented"]
#[expect(unused_variables, reason = "what this test is about")]
async fn old(unused: u8) {}

#[optimus::task]
#[allow(non_snake_case, reason = "what this test is about")]
async fn Shouting(#[allow(unused_mut, reason = "what this test is about")] mut LOUD: u8) {
    let _ = LOUD;
}

#[tokio::main]
pub(super) async fn main() {
    documented(1).perform_inline().await.unwrap();
    #[allow(deprecated, reason = "what this test is about")]
    old(1).perform_inline().await.unwrap();
    Shouting(1).perform_inline().await.unwrap();
}
