//! The history checker rejects each hand-made bad history for the right reason, and accepts good
//! histories.
//!
//! The first word of a line is a time in ms, and the second word is a process: 1 submits, 2 and 3
//! work, and 4 is the nemesis.

mod flows;
mod operators;

use std::fs;
use std::time::Duration;

use optimus_testkit::history::{Event, HistoryLog, Rules, Verdict, What, Why, check, read_history};

const LEASE: Duration = Duration::from_secs(2);

/// The history of a task that was submitted, acknowledged, run and found.
const PLAIN: &str = "
    0 1 invoke 7 - 0
    5 1 acked 7 q/a
    10 2 begin 7 q/a 1 100
    20 2 end 7 100 ok
";

/// Checks a history of one file, written with times in ms.
fn checked(history: &str) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for line in history.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<String> = line.split(' ').enumerate().map(in_ns).collect();
        lines += &(words.join(" ") + "\n");
    }
    fs::write(folder.path().join("1.history"), lines).unwrap();
    check(folder.path(), &Rules { lease: LEASE }).unwrap()
}

/// Converts the times of a line. The first word is a time, and so is each word that ends in `ms`.
fn in_ns((at, word): (usize, &str)) -> String {
    let ms = if at == 0 { Some(word) } else { word.strip_suffix("ms") };
    let ns = ms.map(|ms| (ms.parse::<u64>().unwrap() * 1_000_000).to_string());
    ns.unwrap_or_else(|| word.to_owned())
}

#[track_caller]
fn is_good(history: &str) -> Verdict {
    let verdict = checked(history);
    assert!(verdict.is_good(), "{verdict}");
    verdict
}

#[track_caller]
fn is_bad(history: &str, because: &str) {
    let verdict = checked(history);
    let told = verdict.findings.iter().any(|finding| finding.contains(because));
    assert!(!verdict.is_good() && told, "{because:?} is not found:\n{verdict}");
}

#[track_caller]
fn ran_again(by: &str, why: Why) {
    let again = "
        9000 3 begin 7 q/a 2 200
        9010 3 end 7 200 ok
        9990 1 found 7 success 200
    ";
    let verdict = is_good(&format!("{by}{again}"));
    assert_eq!(verdict.second_by(why), 1, "{verdict}");
}

#[test]
fn a_plain_life_is_good_and_counted() {
    let verdict = is_good(&format!("{PLAIN} 90 1 found 7 success 100"));
    assert_eq!((verdict.submitted, verdict.acked, verdict.executed), (1, 1, 1));
    is_good(&format!("{PLAIN} 90 1 found 7 forgotten 0"));
}

#[test]
fn a_worker_is_checked_by_its_own_lease() {
    let began = "0 1 invoke 7 - 0\n5 1 acked 7 q/a\n10 2 begin 7 q/a 1 100\n";
    let away = "3000 4 outage 1500ms 2\n";
    ran_again(&format!("{began}{away}"), Why::Outage);
    let again = "3500 3 begin 7 q/a 2 200\n3510 3 end 7 200 ok\n9990 1 found 7 success 200";
    let longer = format!("1 4 lease 2 6000\n{began}{away}{again}");
    is_bad(&longer, "ran once more without a reason");
}

#[test]
fn each_repeated_execution_is_counted_by_its_reason() {
    let submit = "0 1 invoke 7 - 0\n5 1 acked 7 q/a\n";
    let began = format!("{submit}10 2 begin 7 q/a 1 100\n");
    ran_again(&format!("{began}20 2 end 7 100 failed"), Why::Failure);
    ran_again(&format!("{began}2000 4 killed 2"), Why::Killed);
    ran_again(&format!("{PLAIN}30 4 killed 2"), Why::Killed);
    // A later process has the same id.
    ran_again(&format!("{began}9980 4 killed 2\n2000 4 killed 2"), Why::Killed);
    ran_again(&format!("{began}5000 4 frozen 2 1000ms"), Why::Frozen);
    ran_again(&format!("{began}5000 4 outage 1000ms -"), Why::Outage);
    ran_again(&format!("{began}5000 4 stalled 1000ms"), Why::Stalled);
    ran_again(&format!("{began}50 2 end 7 100 stopped\n60 4 left 2 40ms"), Why::GivenBack);
    ran_again(&format!("{PLAIN}500 4 rollback 15ms"), Why::RolledBack);
    // The task was claimed before the rollback and began just after it.
    ran_again(&format!("{PLAIN}9 4 rollback 6ms"), Why::RolledBack);
    ran_again(&format!("{PLAIN}8000 1 requeue 7"), Why::Requeued);
}

#[test]
fn a_reason_that_comes_too_late_or_is_too_small_is_none() {
    let again = "9000 3 begin 7 q/a 2 200\n9010 3 end 7 200 ok\n9990 1 found 7 success 200";
    for by in [
        "",
        "8000 4 killed 2",
        "8000 4 left 2 7000ms",
        "8000 4 frozen 2 5000ms",
        "8000 4 outage 5000ms -",
        "8000 4 stalled 5000ms",
        "500 4 frozen 2 10ms",
        "400 4 outage 10ms -",
        "5000 4 outage 10ms 9",
        "30 4 killed 9",
    ] {
        is_bad(&format!("{PLAIN}{by}\n{again}"), "ran once more without a reason");
    }
    let stopped = PLAIN.replace("100 ok", "100 stopped");
    is_bad(&format!("{stopped}{again}"), "ran once more without a reason");
}

#[test]
fn short_hindrances_that_follow_each_other_count_together() {
    let began = PLAIN.replace("20 2 end 7 100 ok", "");
    let by = "5000 4 frozen 2 4200ms\n6000 4 outage 5200ms -";
    ran_again(&format!("{began}{by}"), Why::Outage);
    let again = "9000 3 begin 7 q/a 2 200\n9010 3 end 7 200 ok\n9990 1 found 7 success 200";
    let by = "3000 4 frozen 2 2200ms\n5650 4 outage 5200ms -\n";
    is_bad(&format!("{began}{by}{again}"), "without a reason");
}

#[test]
fn three_failed_heartbeats_in_a_row_may_end_a_short_lease_however_short_the_faults_were() {
    let began = "0 1 invoke 7 - 0\n5 1 acked 7 q/a\n1 4 lease 2 1000\n10 2 begin 7 q/a 1 100\n";
    let stopped = "900 2 end 7 100 stopped\n";
    let again = "910 3 begin 7 q/a 1 200\n920 3 end 7 200 ok\n9990 1 found 7 success 200";
    let story = |missed: &str| format!("{began}{missed}{stopped}{again}");
    let three = "300 4 missed 2\n550 4 missed 2\n800 4 missed 2\n";
    assert_eq!(is_good(&story(three)).second_by(Why::Outage), 1);
    for too_few in [
        "550 4 missed 2\n800 4 missed 2\n",
        "300 4 missed 2\n550 4 missed 3\n800 4 missed 2\n",
        // Several queues of a worker, or an outage, at the same time count once.
        "550 4 missed 2\n560 4 missed 2\n800 4 missed 2\n",
        "750 4 outage 550ms 2\n550 4 missed 2\n560 4 missed 2\n",
        "300 4 outage 300ms 2\n550 4 outage 550ms 2\n800 4 outage 800ms 2\n",
    ] {
        is_bad(&story(too_few), "ran once more without a reason");
    }
    let longer = story(three).replace("lease 2 1000", "lease 2 2000");
    is_bad(&longer, "ran once more without a reason");
}

#[test]
fn an_outage_has_effects_for_as_long_again_as_it_lasted() {
    let began = PLAIN.replace("20 2 end 7 100 ok", "");
    ran_again(&format!("{began}5600 4 outage 5000ms -"), Why::Outage);
    let again = "9000 3 begin 7 q/a 2 200\n9010 3 end 7 200 ok\n9990 1 found 7 success 200";
    is_bad(&format!("{began}5400 4 outage 5000ms -\n{again}"), "without a reason");
}

#[test]
fn a_worker_may_doubt_its_lease_just_after_an_outage() {
    let stopped = PLAIN.replace("100 ok", "100 stopped");
    let later = stopped.replace("10 2", "9010 2").replace("20 2", "9020 2");
    let again = "9030 3 begin 7 q/a 1 200\n9040 3 end 7 200 ok\n9990 1 found 7 success 200";
    let outage = |until: u64| format!("{later}{until} 4 outage 4000ms -\n{again}");
    assert_eq!(is_good(&outage(9000)).second_by(Why::Outage), 1);
    is_bad(&outage(5500), "without a reason");
}

#[test]
fn a_report_that_an_outage_held_up_may_be_lost_with_its_worker() {
    let by = "3000 4 outage 15ms -\n8000 4 killed 2";
    ran_again(&format!("{PLAIN}{by}"), Why::Killed);
}

#[test]
fn an_acknowledged_task_that_is_gone_is_lost() {
    let submit = "0 1 invoke 7 - 0\n5 1 acked 7 q/a\n";
    is_bad(&format!("{submit}90 1 found 7 forgotten 0"), "is lost");
    let began = format!("{submit}10 2 begin 7 q/a 1 100\n20 4 killed 2\n");
    is_bad(&format!("{began}90 1 found 7 forgotten 0"), "is lost");
    is_bad(&format!("{began}90 1 found 7 success 0"), "is lost");
    is_bad(&format!("{began}90 1 found 7 live 0"), "has not ended");
    is_bad(&began, "its end was not checked");
}

#[test]
fn only_what_was_acknowledged_just_before_a_rollback_may_be_gone_with_it() {
    let submit = "3000 1 invoke 7 - 0\n3005 1 acked 7 q/a\n";
    let verdict = is_good(&format!("{submit}5000 4 rollback 3000ms\n9000 1 found 7 forgotten 0"));
    assert_eq!(verdict.rolled_back, 1);
    is_good(&format!("{submit}3003 4 rollback 3001ms\n9000 1 found 7 forgotten 0"));
    is_bad(&format!("{submit}9000 4 rollback 7000ms\n9900 1 found 7 forgotten 0"), "is lost");
}

#[test]
fn a_rollback_may_give_a_task_back_to_the_one_before() {
    let taken_over =
        "3000 3 begin 7 q/a 2 200\n9000 3 end 7 200 stopped\n9500 1 found 7 success 100";
    let outage = "2900 4 outage 15ms -\n";
    is_bad(&format!("{PLAIN}{outage}{taken_over}"), "is lost");
    is_good(&format!("{PLAIN}{outage}5000 4 rollback 2950ms\n{taken_over}"));
}

#[test]
fn a_submit_without_an_answer_may_have_happened_or_not() {
    let unknown = "0 1 invoke 7 - 0\n5 1 unknown 7\n";
    assert_eq!(is_good(unknown).unknown, 1);
    is_good(&format!("{unknown}10 2 begin 7 q/a 1 100\n20 2 end 7 100 ok"));
    is_good(&format!("{unknown}90 1 found 7 forgotten 0"));
    // The client of the task was killed before it received an answer.
    assert_eq!(is_good("0 1 invoke 7 - 0").unknown, 1);
}

#[test]
fn nothing_runs_that_was_not_submitted() {
    let ran = "10 2 begin 7 q/a 1 100\n20 2 end 7 100 ok\n";
    is_bad(ran, "no client submitted it");
    is_bad(&format!("0 1 invoke 7 - 0\n5 1 refused 7\n{ran}"), "was refused");
    is_bad(&format!("0 1 invoke 7 3 0\n5 1 duplicate 7 q/b\n{ran}"), "was a duplicate");
    is_bad("0 1 invoke 7 - 0\n20 2 end 7 100 ok", "never began");
}

#[test]
fn one_submit_makes_one_task() {
    let other = "30 2 begin 7 q/b 1 200\n40 2 end 7 200 ok\n90 1 found 7 success 200";
    is_bad(&format!("{PLAIN}{other}"), "became two tasks");
    let unknown = PLAIN.replace("acked 7 q/a", "unknown 7");
    is_bad(&format!("{unknown}{other}"), "became two tasks");
}

#[test]
fn fences_grow_and_belong_to_one_attempt() {
    let failed = PLAIN.replace("100 ok", "100 failed");
    let end = "90 1 found 7 success";
    is_bad(&format!("{failed}30 3 begin 7 q/a 2 100\n40 3 end 7 100 ok\n{end} 100"), "one fence");
    let lower = "30 3 begin 7 q/a 2 50\n40 3 end 7 50 failed\n";
    is_bad(&format!("{failed}{lower}{end} 100"), "lower fence");
    let fewer =
        format!("{}30 3 begin 7 q/a 1 200\n40 3 end 7 200 ok\n", failed.replace("1 100", "2 100"));
    is_bad(&format!("{fewer}{end} 200"), "has a lower attempt number");
}

#[test]
fn a_worker_that_was_frozen_may_begin_late_what_it_lost() {
    let frozen = "
        0 1 invoke 7 - 0
        5 1 acked 7 q/a
        9000 3 begin 7 q/a 2 200
        9010 3 end 7 200 ok
        9100 4 frozen 2 10ms
        9101 2 begin 7 q/a 1 100
        9102 2 end 7 100 stopped
        9990 1 found 7 success 200
    ";
    assert_eq!(is_good(frozen).second_by(Why::Frozen), 1);
    is_bad(&frozen.replace("9100 4 frozen 2 10ms", ""), "lower fence");
}

#[test]
fn a_late_report_is_refused() {
    let zombie = "
        0 1 invoke 7 - 0
        5 1 acked 7 q/a
        10 2 begin 7 q/a 1 100
        9000 3 begin 7 q/a 2 200
        9100 4 frozen 2 15ms
        9101 2 end 7 100 ok
        9200 3 end 7 200 ok
    ";
    assert_eq!(is_good(&format!("{zombie} 9990 1 found 7 success 200")).second_by(Why::Frozen), 1);
    is_bad(&format!("{zombie} 9990 1 found 7 success 100"), "had lost its lease");
    is_bad(&format!("{PLAIN} 90 1 found 7 success 300"), "an attempt that never began");
}

#[test]
fn nothing_runs_before_it_is_due_or_after_it_was_cancelled() {
    let end = "90 1 found 7 success 100";
    is_bad(&format!("{}{end}", PLAIN.replace("7 - 0", "7 - 500")), "before it was due");
    is_good(&format!("{}{end}", PLAIN.replace("7 - 0", "7 - 10")));
    let late = PLAIN.replace("7 - 0", "7 - 500");
    is_good(&format!("3 4 clock 3ms 3000\n{late}{end}"));
    is_good(&format!("{late}35 4 clock 8ms 3000\n{end}"));
    is_bad(&format!("{late}35 4 clock 15ms 3000\n{end}"), "before it was due");
    is_bad(&format!("3 4 clock 3ms -3000\n{late}{end}"), "before it was due");
    let requeued = "6 1 cancel 7\n7 1 cancelled 7\n8 1 requeue 7\n";
    is_good(&format!("{}{requeued}{end}", PLAIN.replace("7 - 0", "7 - 500")));
    let cancelled = "6 1 cancel 7\n7 1 cancelled 7\n90 1 found 7 cancelled 0";
    is_bad(&format!("{PLAIN}{cancelled}"), "after it was cancelled");
}

#[test]
fn an_end_that_is_not_success_has_a_cause() {
    is_bad(&format!("{PLAIN}90 1 found 7 dead 0"), "nothing failed");
    is_good(&format!("{}90 1 found 7 dead 0", PLAIN.replace("100 ok", "100 failed")));
    is_bad(&format!("{PLAIN}90 1 found 7 cancelled 0"), "no operator requested that");
    is_bad("0 1 invoke 7 - 0\n5 1 acked 7 q/a\n90 1 found 7 dead 0", "nothing failed");
}

#[test]
fn a_task_may_die_unbegun_with_the_workers_that_claimed_it() {
    let submit = "10 1 invoke 7 - 0\n15 1 acked 7 q/a\n";
    let end = "9990 1 found 7 dead 0";
    is_good(&format!("{submit}20 4 killed 2\n{end}"));
    is_bad(&format!("5 4 killed 2\n{submit}{end}"), "nothing failed");
    is_good(&format!("{submit}5000 4 frozen 2 1000ms\n{end}"));
    is_good(&format!("{submit}5000 4 outage 1000ms -\n{end}"));
    is_good(&format!("1 4 lease 2 1000\n{submit}5000 4 outage 4600ms -\n{end}"));
    is_bad(&format!("{submit}5000 4 outage 4600ms -\n{end}"), "nothing failed");
}

#[test]
fn a_biz_id_has_one_task_at_a_time() {
    let first = format!("{}90 1 found 7 success 100\n", PLAIN.replace("7 - 0", "7 3 0"));
    let second = |invoked: u64| {
        let (acked, began, ended) = (invoked + 1, invoked + 2, invoked + 3);
        format!(
            "{invoked} 1 invoke 8 3 0\n{acked} 1 acked 8 q/b\n{began} 2 begin 8 q/b 1 300\n\
             {ended} 2 end 8 300 ok\n91 1 found 8 success 300\n"
        )
    };
    is_good(&format!("{first}{}", second(30)));
    is_bad(&format!("{first}{}", second(6)), "was admitted under biz id 3");
    let died = first.replace("100 ok", "100 failed").replace("success 100", "dead 0");
    is_bad(&format!("{died}{}", second(30)), "was admitted under biz id 3");

    let cancelled = "6 1 cancel 7\n7 1 cancelled 7\n9 1 requeue 7\n";
    is_good(&format!("{first}{cancelled}{}", second(8)));

    is_good(&format!("{first}6 1 invoke 8 3 0\n7 1 duplicate 8 q/a\n"));
    is_bad(&format!("{first}6 1 invoke 8 3 0\n7 1 duplicate 8 q/x\n"), "lacks biz id 3");
}

#[test]
fn the_time_to_recover_is_from_the_kill_to_the_next_begin() {
    let killed = "
        0 1 invoke 7 - 0
        5 1 acked 7 q/a
        10 2 begin 7 q/a 1 100
        20 4 killed 2
        2220 3 begin 7 q/a 2 200
        2230 3 end 7 200 ok
        2300 1 found 7 success 200
    ";
    assert_eq!(is_good(killed).recovery(0.99), Some(Duration::from_millis(2200)));
}

#[test]
fn a_history_is_read_as_it_was_written_except_a_torn_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = HistoryLog::open(folder.path()).unwrap();
    let written = [What::Invoke { task: 1, biz: Some(2), delay_ms: 3 }, What::Unknown { task: 1 }];
    log.write_all(written.clone());
    let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole + "123 45 kil").unwrap();
    let mut read = Vec::new();
    read_history(folder.path(), |Event { what, .. }| read.push(what)).unwrap();
    assert_eq!(read, written);
    fs::write(&path, "1 2 nonsense\n").unwrap();
    assert!(read_history(folder.path(), drop).is_err());
}
