//! Each kind of false answer to an operator is found.

use super::{PLAIN, is_bad, is_good};

#[test]
fn a_cancelled_task_stays_cancelled_unless_an_operator_requeues_it() {
    let cancelled = "6 1 cancel 7\n7 1 cancelled 7\n";
    let delayed = "0 1 invoke 7 - 500\n5 1 acked 7 q/a\n";
    is_good(&format!("{delayed}{cancelled}90 1 found 7 cancelled 0"));
    let ran = PLAIN.replace("10 2", "6 2");
    let found = "90 1 found 7 success 100\n";
    is_bad(&format!("{ran}{cancelled}{found}"), "did not stay cancelled");
    is_bad(&format!("{delayed}{cancelled}90 1 found 7 forgotten 0"), "did not stay cancelled");
    is_good(&format!("{ran}{cancelled}8 3 requeue 7\n{found}"));
    is_good(&format!("{ran}{cancelled}500 4 rollback 7ms\n{found}"));
    is_bad(&format!("{ran}{cancelled}500 4 rollback 9ms\n{found}"), "did not stay cancelled");
}

#[test]
fn no_attempt_follows_the_one_that_a_worker_was_asked_to_stop() {
    let stopping = "12 1 cancel 7\n13 1 stopping 7\n";
    let cancelled = "90 1 found 7 cancelled 0\n";
    let failed = PLAIN.replace("100 ok", "100 failed");
    is_good(&format!("{failed}{stopping}{cancelled}"));
    is_good(&format!("{PLAIN}{stopping}90 1 found 7 success 100"));
    let again = "70 3 begin 7 q/a 2 200\n80 3 end 7 200 failed\n";
    is_bad(&format!("{failed}{stopping}{again}{cancelled}"), "asked to stop it");
    is_good(&format!("{failed}{stopping}30 3 requeue 7\n{again}{cancelled}"));
    is_good(&format!("{failed}22 1 cancel 7\n23 1 stopping 7\n{again}{cancelled}"));
    is_good(&format!("{failed}{stopping}60 4 rollback 12ms\n{again}{cancelled}"));
}

#[test]
fn a_requeued_task_runs_again() {
    let died = PLAIN.replace("100 ok", "100 failed");
    let requeued = format!("{died}30 1 requeue 7\n35 1 requeued 7\n");
    let again = "40 3 begin 7 q/a 1 200\n50 3 end 7 200 ok\n90 1 found 7 success 200";
    is_good(&format!("{requeued}{again}"));
    is_bad(&format!("{requeued}90 1 found 7 dead 0"), "never ran again");
    is_good(&format!("{requeued}50 4 rollback 33ms\n90 1 found 7 dead 0"));
    is_bad(&format!("{requeued}50 4 rollback 36ms\n90 1 found 7 dead 0"), "never ran again");
    is_good(&format!("{requeued}38 1 cancel 7\n39 1 cancelled 7\n90 1 found 7 cancelled 0"));
    // The outcome of the request is unknown.
    is_good(&format!("{died}30 1 requeue 7\n90 1 found 7 dead 0"));
    let waits = "0 1 invoke 7 - 0\n5 1 acked 7 q/a\n6 1 requeue 7\n7 1 requeued 7\n";
    is_bad(&format!("{waits}{again}"), "neither dead nor cancelled");
}

#[test]
fn a_deleted_task_is_gone() {
    let deleted = "6 1 delete 7\n7 1 deleted 7\n";
    let delayed = "0 1 invoke 7 - 500\n5 1 acked 7 q/a\n";
    let gone = "90 1 found 7 forgotten 0\n";
    is_good(&format!("{delayed}{deleted}{gone}"));
    is_bad(&format!("{delayed}{gone}"), "acknowledged and is lost");
    is_bad(&format!("{delayed}6 1 delete 7\n7 1 undone 7\n{gone}"), "acknowledged and is lost");
    // The outcome of the request is unknown.
    is_good(&format!("{delayed}6 1 delete 7\n{gone}"));
    is_bad(&format!("{PLAIN}{deleted}90 1 found 7 success 100"), "ran after it was deleted");
    let died = PLAIN.replace("100 ok", "100 failed");
    let late = "30 1 delete 7\n35 1 deleted 7\n";
    is_good(&format!("{died}{late}{gone}"));
    is_bad(&format!("{died}{late}90 1 found 7 dead 0"), "still exists");
    is_good(&format!("{died}{late}50 4 rollback 33ms\n90 1 found 7 dead 0"));
    is_good(&format!("{delayed}6 1 cancel 7\n7 1 cancelled 7\n{late}{gone}"));
    let requeued = "22 1 requeue 7\n24 1 requeued 7\n";
    is_good(&format!("{died}{requeued}{late}{gone}"));
}

#[test]
fn the_biz_id_of_a_deleted_task_is_free() {
    let first = "0 1 invoke 7 3 500\n5 1 acked 7 q/a\n";
    let second = "10 1 invoke 8 3 500\n15 1 acked 8 q/b\n";
    let dead = "90 1 found 7 dead 0\n90 1 found 8 cancelled 0\n";
    is_bad(&format!("{first}{second}{dead}"), "under biz id 3");
    let deleted = "6 1 delete 7\n7 1 deleted 7\n";
    let gone =
        "80 1 cancel 8\n81 1 cancelled 8\n90 1 found 7 forgotten 0\n90 1 found 8 cancelled 0";
    is_good(&format!("{first}{deleted}{second}{gone}"));
}

#[test]
fn a_request_that_was_answered_as_undone_explains_nothing() {
    let again = "30 3 begin 7 q/a 2 200\n40 3 end 7 200 ok\n90 1 found 7 success 200";
    is_good(&format!("{PLAIN}25 1 requeue 7\n{again}"));
    let undone = "25 1 requeue 7\n26 1 undone 7\n";
    is_bad(&format!("{PLAIN}{undone}{again}"), "ran once more without a reason");
    let delayed = "0 1 invoke 7 - 500\n5 1 acked 7 q/a\n6 1 cancel 7\n";
    is_good(&format!("{delayed}90 1 found 7 cancelled 0"));
    is_bad(
        &format!("{delayed}7 1 undone 7\n90 1 found 7 cancelled 0"),
        "no operator requested that",
    );
    is_good(&format!("{delayed}7 1 undone 7\n8 1 cancel 7\n90 1 found 7 cancelled 0"));
}

#[test]
fn nothing_is_claimed_from_a_queue_that_is_paused() {
    let life = |at: u64| {
        let (acked, began, ended, found) = (at + 5, at + 10, at + 20, at + 90);
        format!(
            "{at} 1 invoke 7 - 0\n{acked} 1 acked 7 q/a\n{began} 2 begin 7 q/a 1 100\n\
             {ended} 2 end 7 100 ok\n{found} 1 found 7 success 100\n"
        )
    };
    let paused = "10000 3 pause q\n10010 3 paused q\n";
    is_bad(&format!("{}{paused}", life(10_020)), "while q was paused");
    // The task may have been claimed before the pause.
    is_good(&format!("{}{paused}", life(10_005)));
    is_good(&format!("{}{}", life(10_020), paused.replace("pause q", "pause p")));
    is_good(&format!("{}10000 3 pause q\n", life(10_020)));
    is_good(&format!("{}{paused}10025 2 resume q\n", life(10_020)));
    is_bad(&format!("{}{paused}10050 2 resume q\n", life(10_020)), "while q was paused");
    is_good(&format!("{}{paused}10022 4 rollback 10005ms\n", life(10_020)));
    // An earlier resume may arrive late, but not that late.
    is_good(&format!("{}{paused}100 2 resume q\n", life(10_020)));
    let later = paused.replace("100", "300");
    is_bad(&format!("{}{later}100 2 resume q\n", life(30_020)), "while q was paused");
}
