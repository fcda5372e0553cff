//! What is due after all workers were away, and what never is.

use std::time::Instant;

use super::*;

const MINUTE: u64 = 60_000;

fn timing(stored: &str) -> Timing {
    Timing::read(stored).unwrap()
}

fn cron(expression: &str, missed: &str) -> Timing {
    timing(&format!(r#"{{"cron":"{expression}","tz":"UTC","missed":"{missed}"}}"#))
}

fn instants(plan: &Plan) -> Vec<u64> {
    plan.fires.iter().map(|fire| fire.nominal_ms / MINUTE).collect()
}

#[test]
fn each_policy_has_its_instants_after_an_absence() {
    let due_ms = 100 * MINUTE;
    let plan = |missed, now_ms| cron("* * * * *", missed).plan(due_ms, now_ms);
    for missed in ["skip", "run_once", "all"] {
        let in_time = plan(missed, due_ms + 5);
        assert_eq!(in_time.fires, [Fire { nominal_ms: due_ms, missed: 0 }], "{missed}");
        assert_eq!((in_time.next_ms, in_time.left_out), (Some(101 * MINUTE), None));
    }
    let late_ms = 104 * MINUTE + 59_000;
    let once = plan("run_once", late_ms);
    assert_eq!(once.fires, [Fire { nominal_ms: 104 * MINUTE, missed: 4 }]);
    assert_eq!(once.next_ms, Some(105 * MINUTE));
    assert_eq!(plan("skip", late_ms).fires, once.fires, "the latest is not a minute old");
    assert_eq!(instants(&plan("all", late_ms)), [100, 101, 102, 103, 104]);
    assert!(plan("all", late_ms).fires.iter().all(|fire| fire.missed == 0));
    let hourly = cron("@hourly", "skip").plan(60 * MINUTE, 122 * MINUTE);
    assert_eq!(hourly.left_out, Some(Fire { nominal_ms: 120 * MINUTE, missed: 1 }));
    assert_eq!((hourly.fires.len(), hourly.next_ms), (0, Some(180 * MINUTE)));
}

#[test]
fn the_instants_of_every_keep_their_distance() {
    let every = timing(r#"{"every_ms":90000,"missed":"all"}"#);
    assert_eq!(every.next_ms(5), Some(90_005));
    let plan = every.plan(1_000, 1_000 + 4 * 90_000 + 7);
    let found: Vec<u64> = plan.fires.iter().map(|fire| fire.nominal_ms).collect();
    assert_eq!(found, [1_000, 91_000, 181_000, 271_000, 361_000]);
    assert_eq!(plan.next_ms, Some(451_000));
}

#[test]
fn an_absence_of_years_costs_little_and_has_the_latest_thousand() {
    let (due_ms, now_ms) = (1_000, 40 * 365 * 24 * 60 * MINUTE);
    for schedule in [
        r#"{"cron":"* * * * * *","missed":"all"}"#,
        r#"{"every_ms":1000,"missed":"all"}"#,
        r#"{"cron":"* * * * *","missed":"all","tz":"America/New_York"}"#,
    ] {
        let began = Instant::now();
        let plan = timing(schedule).plan(due_ms, now_ms);
        assert_eq!(plan.fires.len(), BACK_MAX, "{schedule}");
        assert_eq!(plan.fires.last().unwrap().nominal_ms, now_ms, "{schedule}");
        let is_next = plan.next_ms.is_some_and(|next| next > now_ms && next <= now_ms + MINUTE);
        assert!(is_next && began.elapsed().as_secs() < 5, "{schedule}: {:?}", began.elapsed());
    }
    let rare = cron("0 0 1 1 *", "all").plan(due_ms, now_ms);
    assert!((39..=40).contains(&rare.fires.len()), "{}", rare.fires.len());
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_due_before_the_expected_instant() {
    let plan = cron("* * * * *", "all").plan(100 * MINUTE, 90 * MINUTE);
    assert_eq!((instants(&plan), plan.next_ms), (vec![100], Some(101 * MINUTE)));
}

#[test]
fn a_timing_is_read_from_its_text_and_other_texts_are_refused() {
    for text in [
        r#"{"cron":"@daily","tz":"Asia/Tokyo","missed":"skip","overlap":"queue","jitter_ms":5}"#,
        r#"{"every_ms":60000,"missed":"all","overlap":"all","jitter_ms":0}"#,
    ] {
        assert_eq!(timing(text).stored(), text);
    }
    for text in [
        "",
        "{}",
        r#"{"every_ms":0}"#,
        r#"{"cron":"x"}"#,
        r#"{"cron":"@daily","every_ms":5}"#,
        r#"{"cron":"@daily","tz":"Mars/Base"}"#,
        r#"{"cron":"@daily","missed":"newer"}"#,
    ] {
        assert!(Timing::read(text).is_err(), "{text}");
    }
}
