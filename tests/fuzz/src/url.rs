//! Tests the URLs of stores. An invalid URL is refused with a reason, and no password is ever
//! printed.

use optimus_core::broker::Endpoint;

/// A secret text that does not occur by chance.
const SECRET: &str = "5ecret";

/// Checks any text, and any text with a password in the middle.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.contains(SECRET) || text.starts_with("memory:") {
        // A text that already contains the secret proves nothing. A `memory:` URL creates a store
        // that is never freed.
        return;
    }
    read(&text);
    let half = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or(0);
    let (before, after) = text.split_at(half);
    read(&format!("redis://user:{SECRET}@{text}"));
    read(&format!("{before}user:{SECRET}@{after}"));
    read(&format!("{before}:{SECRET}@{after}"));
    read(&format!("unix:///{before}?pass={SECRET}{after}"));
}

fn read(url: &str) {
    let printed = match Endpoint::parse(url) {
        Ok(endpoint) => endpoint.describe(),
        Err(problem) => {
            assert!(problem.is_invalid(), "{problem}");
            problem.to_string()
        }
    };
    assert!(!printed.is_empty());
    assert!(!printed.contains(SECRET), "{url:?} is printed as {printed:?}");
}
