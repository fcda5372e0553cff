//! What a context shows of its attempt, and whom a cancel wakes.

use futures_util::FutureExt;

use super::*;

fn context(data: Data) -> Context {
    let id = TaskId::new(QueueName::new("q").unwrap());
    let deadline = Instant::now() + Duration::from_secs(3600);
    let first = AttemptFacts::first(id, deadline);
    let second =
        AttemptFacts { task: "mail", number: 2, failures: 1, fence: 7, max_retry: 1, ..first };
    Context::new(second, Arc::new(data))
}

#[test]
fn a_context_describes_its_attempt() {
    let context = context(Data::new().with(5_u8));
    assert_eq!((context.attempt(), context.fence()), (2, 7));
    assert_eq!((context.task(), context.queue().as_str()), ("mail", "q"));
    assert_eq!((context.max_retry(), context.is_last_attempt()), (1, true));
    assert!(context.remaining() > Duration::from_secs(3000));
    assert_eq!((context.data(), context.data::<u16>()), (Some(5_u8), None));
    assert_eq!(context.age(), None);
}

#[test]
fn a_cancel_wakes_every_waiter_and_later_ones_do_not_wait() {
    let context = context(Data::new());
    let (mut early, mut other) = (pin!(context.cancelled()), pin!(context.cancelled()));
    assert!(early.as_mut().now_or_never().is_none());
    assert!(other.as_mut().now_or_never().is_none());
    assert!(!context.is_cancelled());
    context.cancel();
    assert!(context.is_cancelled());
    for woken in [early.now_or_never(), other.now_or_never()] {
        assert!(woken.is_some());
    }
    assert!(context.cancelled().now_or_never().is_some());
}
