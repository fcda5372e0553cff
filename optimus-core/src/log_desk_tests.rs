//! What an attempt says, until it is sent.

use std::time::Duration;

use super::*;
use crate::id::QueueName;

fn desk() -> (LogDesk, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let wakes = woken.clone();
    let wake = move || {
        wakes.fetch_add(1, Ordering::Relaxed);
    };
    (LogDesk::new(wake), woken)
}

fn log(desk: LogDesk) -> (Arc<LogDesk>, Arc<AttemptLog>) {
    let desk = Arc::new(desk);
    let log = another_log(&desk);
    (desk, log)
}

fn another_log(desk: &Arc<LogDesk>) -> Arc<AttemptLog> {
    let now = Instant::now();
    let seat = LogSeat { desk: desk.clone(), began_ms: 5_000, began: now };
    let id = TaskId::new(QueueName::new("q").unwrap());
    let facts = AttemptFacts::first(id, (now + Duration::from_secs(1)).into_std());
    seat.log(&facts)
}

fn texts(said: &SaidLines) -> Vec<&str> {
    said.text.lines().map(|line| line.splitn(3, ' ').nth(2).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn lines_wait_with_their_times_until_they_are_sent() {
    let (desk, woken) = desk();
    let (desk, log) = log(desk);
    desk.say(&log, "one\r\n\ntwo");
    tokio::time::advance(Duration::from_millis(40)).await;
    desk.say(&log, "three");
    let taken = desk.take().expect("it is listed");
    assert!(desk.is_empty(), "it is listed once");
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    let said = taken.unsent();
    assert_eq!(said.text, "5000 1 one\n5000 1 \n5000 1 two\n5040 1 three");
    assert_eq!((said.count, said.last), (4, 4));
    desk.say(&log, "four");
    desk.sent(&log, said.last);
    let said = desk.take().expect("another line waits").unsent();
    assert_eq!((texts(&said), said.count, said.last), (vec!["four"], 1, 5));
    desk.again(&log);
    assert_eq!(desk.take().expect("it was not sent").unsent().last, 5);
    desk.sent(&log, 5);
    assert!(desk.is_empty() && desk.bytes.load(Ordering::Relaxed) == 0);
}

#[tokio::test]
async fn an_attempt_that_says_a_million_lines_keeps_its_last_hundred() {
    let (desk, log) = log(desk().0);
    for number in 0..1_000_000 {
        desk.say(&log, &format!("{number}"));
    }
    let said = desk.take().unwrap().unsent();
    assert_eq!((said.count, said.last), (LINES_MAX, 1_000_000));
    assert_eq!(texts(&said)[0], "999900");
    assert!(desk.bytes.load(Ordering::Relaxed) <= BYTES_MAX);
}

#[tokio::test]
async fn lines_are_short_and_all_lines_of_an_attempt_have_a_bound() {
    let (desk, log) = log(desk().0);
    for _ in 0..50 {
        desk.say(&log, &"ö".repeat(100_000));
    }
    let said = desk.take().unwrap().unsent();
    assert!(texts(&said).iter().all(|line| line.len() == LINE_BYTES_MAX));
    assert!(said.text.len() <= BYTES_MAX && said.count > 10, "{}", said.count);
    desk.say(&log, &format!("a{}", "ö".repeat(300)));
    assert_eq!(texts(&desk.take().unwrap().unsent()).last().unwrap().len(), LINE_BYTES_MAX - 1);
}

#[tokio::test]
async fn the_lines_of_all_attempts_have_a_bound_and_numbers_without_gaps() {
    let (desk, first) = log(desk().0);
    desk.say(&first, "a");
    desk.say(&first, "b");
    let rest = DESK_BYTES_MAX - desk.bytes.load(Ordering::Relaxed);
    assert!(desk.takes(rest) && !desk.takes(1));
    desk.say(&first, "c");
    desk.say(&first, "much longer");
    let said = desk.take().unwrap().unsent();
    assert_eq!((texts(&said), said.last), (vec!["much longer"], 4), "it is in their place");
    desk.sent(&first, 4);
    desk.say(&first, "d");
    let said = desk.take().unwrap().unsent();
    assert_eq!((texts(&said), said.last, said.count), (vec!["d"], 5, 1));
}

#[tokio::test]
async fn ended_attempts_with_a_short_line_each_have_a_bound_in_memory() {
    let desk = Arc::new(desk().0);
    for _ in 0..100_000 {
        desk.say(&another_log(&desk), "x");
    }
    let kept = locked(&desk.listed).len();
    assert_eq!(kept, DESK_BYTES_MAX / (LOG_BYTES + LINE_BYTES + 1));
    while let Some(log) = desk.take() {
        desk.sent(&log, log.unsent().last);
    }
    assert_eq!(desk.bytes.load(Ordering::Relaxed), 0);
}
