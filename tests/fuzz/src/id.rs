//! Tests names and ids. A name that is read is printed unchanged, and no name can escape its key.

use optimus_core::{InvalidName, NAME_BYTES_MAX, QueueName, TaskId, Token, WorkerId};

/// Checks each form of name, read from any text.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let is_plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let fits = !text.is_empty() && text.len() <= NAME_BYTES_MAX && is_plain(&text);
    assert_eq!(QueueName::new(&text).is_ok(), fits, "{text:?}");

    let queue = QueueName::new("q").expect("a plain name");
    if let Ok(id) = TaskId::from_stored(queue.clone(), &text) {
        assert_eq!(id.stored(), text);
    }
    match text.parse::<TaskId>() {
        Ok(id) => {
            assert_eq!(id.to_string().parse(), Ok(id.clone()));
            assert_eq!(TaskId::from_stored(id.queue().clone(), &id.stored()), Ok(id));
        }
        Err(InvalidName::NotATaskId(named)) => assert_eq!(named, text),
        Err(other) => assert!(!other.to_string().is_empty()),
    }
    if let Some(token) = Token::parse(&text) {
        assert_eq!(Token::parse(&token.to_string()), Some(token));
    }
    let worker = WorkerId::generate(&text, 1);
    assert!(is_plain(worker.as_str()), "{worker}");
    assert_eq!(WorkerId::from_stored(worker.as_str()), worker);
}
