//! Each broken promise about lanes, limits and prerequisites is found.

use super::{is_bad, is_good};

/// The history of task 7 and of task 8, which was submitted after it, with these facts about each.
fn two(of_7: &str, of_8: &str) -> String {
    let first = format!("0 1 {of_7}\n0 1 invoke 7 - 0\n5 1 acked 7 q/a\n");
    first + &format!("6 1 {of_8}\n6 1 invoke 8 - 0\n8 1 acked 8 q/b\n")
}

const SUCCEEDED: &str = "90 1 found 7 success 100\n90 1 found 8 success 200\n";

fn in_lane(lane: &str) -> String {
    two(&format!("lane 7 {lane}"), &format!("lane 8 {lane}"))
}

/// Two executions, of which the second begins at this time.
fn runs(second_ms: u64) -> String {
    let end = second_ms + 10;
    let first = "10 2 begin 7 q/a 1 100\n20 2 end 7 100 ok\n";
    format!("{first}{second_ms} 3 begin 8 q/b 1 200\n{end} 3 end 8 200 ok\n{SUCCEEDED}")
}

#[test]
fn a_lane_runs_no_more_tasks_at_once_than_it_is_wide() {
    let (one, two) = (in_lane("1 skip q/lane:a"), in_lane("2 skip q/lane:a"));
    is_good(&format!("{one}{}", runs(21)));
    is_bad(&format!("{one}{}", runs(19)), "began while [7] ran in lane q/lane:a");
    is_good(&format!("{two}{}", runs(19)));
    // Another worker may have the task of one that was frozen.
    let frozen = "4000 4 frozen 2 12ms\n";
    let late = "10 2 begin 7 q/a 1 100\n3000 3 begin 8 q/b 1 200\n3010 3 end 8 200 ok\n\
                4001 2 end 7 100 ok\n";
    is_good(&format!("{one}{late}{frozen}{SUCCEEDED}"));
}

#[test]
fn tasks_of_a_lane_of_one_begin_in_their_order() {
    let early = "9 3 begin 8 q/b 1 50\n9 3 end 8 50 ok\n10 2 begin 7 q/a 1 100\n20 2 end 7 100 ok\n\
                 90 1 found 7 success 100\n90 1 found 8 success 50\n";
    is_bad(&format!("{}{early}", in_lane("1 skip q/lane:a")), "began before 7, which came first");
    is_good(&format!("{}{early}", in_lane("2 skip q/lane:a")));
    let waits = two("lane 7 1 skip q/lane:a\n0 1 after 7 9 success", "lane 8 1 skip q/lane:a");
    is_good(&format!("{waits}{early}"));
}

#[test]
fn a_task_keeps_a_lane_of_one_between_its_attempts() {
    let between = "10 2 begin 7 q/a 1 100\n20 2 end 7 100 failed\n30 3 begin 8 q/b 1 200\n\
                   40 3 end 8 200 ok\n50 2 begin 7 q/a 2 300\n60 2 end 7 300 ok\n\
                   90 1 found 7 success 300\n90 1 found 8 success 200\n";
    is_bad(&format!("{}{between}", in_lane("1 skip q/lane:a")), "between attempts of 7");
    is_good(&format!("{}{between}", in_lane("2 skip q/lane:a")));
    let requeued = "45 1 requeue 7\n46 1 requeued 7\n";
    is_good(&format!("{}{requeued}{between}", in_lane("1 skip q/lane:a")));
}

#[test]
fn a_dead_task_blocks_its_lane_if_the_lane_says_so() {
    let died = "10 2 begin 7 q/a 1 100\n20 2 end 7 100 failed\n30 3 begin 8 q/b 1 200\n\
                40 3 end 8 200 ok\n90 1 found 7 dead 0\n90 1 found 8 success 200\n";
    is_bad(&format!("{}{died}", in_lane("1 block q/lane:a")), "7 is dead and blocks");
    is_good(&format!("{}{died}", in_lane("1 skip q/lane:a")));
}

/// Two tasks of a limit, which start at these times of Redis' clock, in ms.
fn starts(rule: &str, starts: [u64; 2]) -> String {
    let [first, second] = starts.map(|ms| ms * 1024);
    format!(
        "0 1 rule {rule} q/limit:x\n{}10 2 begin 7 q/a 1 {first}\n20 2 end 7 {first} ok\n\
         30 3 begin 8 q/b 1 {second}\n40 3 end 8 {second} ok\n90 1 found 7 success {first}\n\
         90 1 found 8 success {second}\n",
        two("limit 7 1 q/limit:x", "limit 8 1 q/limit:x")
    )
}

#[test]
fn no_interval_has_more_starts_than_the_rate_allows() {
    is_good(&starts("50000 1 0", [1_000, 1_050]));
    is_bad(&starts("50000 1 0", [1_000, 1_049]), "started earlier than limit q/limit:x allows");
    is_good(&starts("50000 2 0", [1_000, 1_000]));
    // A clock that was changed proves nothing about starts.
    let set = "25 4 clock 25ms -500\n";
    is_good(&format!("{set}{}", starts("50000 1 0", [1_000, 1_049])));
}

#[test]
fn a_limit_runs_no_more_tasks_at_once_than_it_allows() {
    let limited = two("limit 7 1 q/limit:x", "limit 8 1 q/limit:x");
    let history = |most: u32, at| format!("0 1 rule 0 1 {most} q/limit:x\n{limited}{}", runs(at));
    is_good(&history(1, 21));
    is_bad(&history(1, 19), "began while [7] ran in limit q/limit:x");
    is_good(&history(2, 19));
}

/// The first execution of task 8 and one of task 7, which was claimed after it. Both begin in the
/// same moment, and end at these times.
fn at_once(end_of_8: u64, end_of_7: u64) -> String {
    format!(
        "10 3 begin 8 q/b 1 100\n{end_of_8} 3 end 8 100 ok\n10 2 begin 7 q/a 1 200\n\
         {end_of_7} 2 end 7 200 ok\n90 1 found 7 success 200\n90 1 found 8 success 100\n"
    )
}

#[test]
fn tasks_that_begin_in_the_same_moment_began_in_the_order_of_their_claims() {
    let limited = two("limit 7 1 q/limit:x", "limit 8 1 q/limit:x");
    let limited = format!("0 1 rule 0 1 1 q/limit:x\n{limited}");
    // The permit of the first was free again when the second was claimed.
    is_good(&format!("{limited}{}", at_once(10, 20)));
    let ran = "began while [8] ran in limit q/limit:x";
    is_bad(&format!("{limited}{}", at_once(20, 10)), ran);
    is_bad(&format!("{limited}{}", at_once(20, 20)), ran);
}

#[test]
fn no_task_of_a_paused_limit_is_claimed() {
    let limited = two("limit 7 1 q/limit:x", "limit 8 1 q/limit:x");
    let paused = "5 4 pause q/limit:x\n5 4 paused q/limit:x\n";
    is_bad(&format!("{limited}{paused}{}", runs(30)), "while q/limit:x was paused");
    is_good(&format!("{limited}{paused}25 4 resume q/limit:x\n{}", runs(30)));
}

#[test]
fn a_task_begins_after_those_that_it_waits_for() {
    let after = |until: &str| two("waits 7", &format!("after 8 7 {until}"));
    is_good(&format!("{}{}", after("success"), runs(30)));
    is_bad(&format!("{}{}", after("success"), runs(15)), "began before 7 had succeeded");
    let died = runs(30).replace("end 7 100 ok", "end 7 100 failed");
    let died = died.replace("found 7 success 100", "found 7 dead 0");
    is_bad(&format!("{}{died}", after("success")), "began before 7 had succeeded");
    is_good(&format!("{}{died}", after("end")));
    let again = "50 2 begin 7 q/a 2 300\n60 2 end 7 300 failed\n";
    is_bad(&format!("{}{died}{again}", after("end")), "began before 7 had ended");
}

#[test]
fn a_task_whose_prerequisites_have_succeeded_runs() {
    let after = two("waits 7", "after 8 7 success");
    let first = "10 2 begin 7 q/a 1 100\n20 2 end 7 100 ok\n90 1 found 7 success 100\n";
    is_bad(&format!("{after}{first}90 1 found 8 cancelled 0"), "did not run");
    is_bad(&format!("{after}{first}90 1 found 8 dead 0"), "did not run");
    let cancelled = "15 1 cancel 8\n16 1 cancelled 8\n";
    is_good(&format!("{after}{first}{cancelled}90 1 found 8 cancelled 0"));
    // It may have given up before the other one had succeeded.
    is_good(&format!("{after}{first}19 0 giveups\n90 1 found 8 dead 0"));
    is_bad(&format!("{after}{first}21 0 giveups\n90 1 found 8 dead 0"), "did not run");
}
