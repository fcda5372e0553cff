//! `agenda`, and the pages of schedules.

use std::collections::BTreeSet;

use optimus_core::{
    Schedule,
    broker::{AGENDA_MAX, Look},
};

use crate::{
    acts::ms,
    bench::{Bench, START},
    jobs::job,
    world_schedules::put,
};

/// Stores schedules that are due after so many seconds.
async fn store(bench: &Bench, names: impl IntoIterator<Item = (String, u64)>) {
    for (name, secs) in names {
        let schedule = Schedule::every(name, ms(secs * 1_000)).call(job());
        put(&bench.at(0), schedule.check().unwrap()).await;
    }
}

async fn store_code(bench: &Bench, name: &str, secs: u64) {
    let schedule = Schedule::every(name, ms(secs * 1_000)).release("1.0.0").call(job());
    put(&bench.at(0), schedule.check().unwrap()).await;
}

async fn due(bench: &Bench, at: u64, own: &[&str]) -> (Vec<String>, Option<u64>, Vec<String>) {
    let own: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
    let look = Look { of_code: &own, ..Look::default() };
    let agenda = bench.at(at).agenda(&bench.queue, look).await.unwrap();
    assert_eq!(agenda.now_ms, START + at);
    let names = agenda.due.into_iter().map(|due| due.name).collect();
    (names, agenda.next_in.map(|wait| u64::try_from(wait.as_millis()).unwrap()), agenda.missing)
}

async fn an_agenda_has_what_is_due_and_when_the_next_is(bench: Bench) {
    assert_eq!(due(&bench, 0, &[]).await, (vec![], None, vec![]));
    store(&bench, [("b".to_owned(), 20), ("a".to_owned(), 10)]).await;
    assert_eq!(due(&bench, 9_000, &[]).await, (vec![], Some(1_000), vec![]));
    assert_eq!(due(&bench, 10_000, &[]).await, (vec!["a".into()], Some(10_000), vec![]));
    assert_eq!(due(&bench, 30_000, &[]).await.0, ["a", "b"]);
}

async fn schedules_of_code_are_due_only_for_those_who_name_them(bench: Bench) {
    store_code(&bench, "code", 10).await;
    assert_eq!(due(&bench, 15_000, &[]).await, (vec![], None, vec![]));
    let named = due(&bench, 15_000, &["code", "gone"]).await;
    assert_eq!(named, (vec!["code".into()], None, vec!["gone".into()]));
    assert_eq!(due(&bench, 1_000, &["code"]).await, (vec![], Some(9_000), vec![]));
}

async fn an_agenda_is_bounded_and_says_that_more_is_due(bench: Bench) {
    store(&bench, (0..AGENDA_MAX as u64 + 9).map(|n| (format!("s{n}"), 1 + n))).await;
    let (names, next_in, _) = due(&bench, 100_000, &[]).await;
    assert_eq!((names.len(), next_in), (AGENDA_MAX, Some(0)));
    let (names, next_in, _) = due(&bench, 5_000, &[]).await;
    assert_eq!((names.len(), next_in), (5, Some(1_000)));
}

async fn an_agenda_leaves_out_what_its_caller_cannot_read(bench: Bench) {
    let all = AGENDA_MAX as u64 + 9;
    store(&bench, (0..all).map(|n| (format!("s{n}"), 1 + n))).await;
    let unread: Vec<String> = (0..AGENDA_MAX).map(|n| format!("s{n}")).collect();
    let look = Look { unread: &unread, ..Look::default() };
    let agenda = bench.at(30_000).agenda(&bench.queue, look).await.unwrap();
    assert!(agenda.due.is_empty(), "those that are due can't be read");
    let next = ms((all - 8) * 1_000 - 30_000);
    assert_eq!(agenda.next_in, Some(next));
    let agenda = bench.at(100_000).agenda(&bench.queue, look).await.unwrap();
    let names: Vec<String> = agenda.due.into_iter().map(|due| due.name).collect();
    assert_eq!(names, (AGENDA_MAX..AGENDA_MAX + 9).map(|n| format!("s{n}")).collect::<Vec<_>>());
}

async fn if_many_are_due_the_random_number_decides_which_an_agenda_has(bench: Bench) {
    store(&bench, (0..AGENDA_MAX as u64 * 2).map(|n| (format!("s{n}"), 1 + n))).await;
    let (mut seen, most) = (BTreeSet::new(), u32::try_from(AGENDA_MAX).unwrap());
    for random in [0, 7, most, u32::MAX] {
        let look = Look { random, ..Look::default() };
        let agenda = bench.at(100_000).agenda(&bench.queue, look).await.unwrap();
        assert_eq!((agenda.due.len(), agenda.next_in), (AGENDA_MAX, Some(ms(0))), "{random}");
        seen.extend(agenda.due.into_iter().map(|due| due.name));
    }
    assert_eq!(seen.len(), AGENDA_MAX * 2);
}

async fn pages_show_each_schedule_once_in_the_order_in_which_they_are_due(bench: Bench) {
    store(&bench, (0..7).map(|n| (format!("r{n}"), 10 + n / 2))).await;
    for n in 0..4 {
        store_code(&bench, &format!("c{n}"), 5).await;
    }
    for limit in [1, 2, 3, 5, 11, 100] {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page =
                bench.at(0).schedule_page(&bench.queue, limit, after.as_ref()).await.unwrap();
            assert!(page.0.len() <= limit);
            names.extend(page.0.iter().map(|row| row.details().unwrap().name));
            after = page.1;
            if after.is_none() {
                break;
            }
        }
        let expected = (0..7).map(|n| format!("r{n}")).chain((0..4).map(|n| format!("c{n}")));
        assert_eq!(names, expected.collect::<Vec<_>>(), "{limit}");
    }
}

on_both![
    an_agenda_has_what_is_due_and_when_the_next_is,
    schedules_of_code_are_due_only_for_those_who_name_them,
    an_agenda_is_bounded_and_says_that_more_is_due,
    an_agenda_leaves_out_what_its_caller_cannot_read,
    if_many_are_due_the_random_number_decides_which_an_agenda_has,
    pages_show_each_schedule_once_in_the_order_in_which_they_are_due,
];
