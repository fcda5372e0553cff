//! A key of a wrong type stops a script before its first write, because Redis would not roll back
//! writes.

use std::collections::BTreeSet;

use optimus_core::broker::BrokerError;

use crate::{
    bench::Bench,
    dump::{Content, Dump},
    situations::{SITUATIONS, all_names, text_of},
    world::World,
};

/// Keys that a script only names for their prefix, and never reads or writes.
const PREFIX_ONLY: &[(&str, &str)] = &[
    ("await", "meta"),
    ("list", "meta"),
    ("inspect", "meta"),
    ("schedule", "meta"),
    ("reschedule", "meta"),
    ("agenda", "meta"),
];

/// Returns the keys that a script's naming block names, in order.
pub(crate) fn named_keys(text: &str) -> Vec<String> {
    let body = text.split("\n\n").nth(1).expect("a naming block below the header");
    let mut names = Vec::new();
    for statement in body.split("local ") {
        if let Some((left, right)) = statement.split_once('=')
            && right.trim_start().starts_with("KEYS[")
        {
            names.extend(left.split(',').map(|name| name.trim().to_owned()));
        }
    }
    names
}

/// Returns the key of that name in the world.
pub(crate) fn in_world(name: &str, situation: &str) -> String {
    let worker = match situation {
        "a new worker" | "a new worker after an outage" | "roster, a new member" => "newcomer",
        "an idle worker" => "idle",
        _ => "busy",
    };
    match name {
        "working" => format!("working:{worker}"),
        "worker_info" => format!("worker:{worker}"),
        "interrupt" => format!("interrupt:{worker}"),
        "process" if situation == "a new process" => "process:newcomer".into(),
        "process" => "process:busy".into(),
        "wakeup" => "wake:busy".into(),
        "ledger" => "ledger:c1".into(),
        "requeued" => "requeued:again".into(),
        "operated" => "operated:op".into(),
        "operation" => crate::world_operations::key_of(situation).into(),
        "counted" => crate::world_operations::key_of(situation).replace("operation", "counted"),
        "outbox" => "outbox:there".into(),
        "schedule" => crate::world_schedules::key_of("schedule:", situation),
        "ticks" => crate::world_schedules::key_of("ticks:", situation),
        "bucket" => format!("bucket:{}", crate::world_dispenser::assignee_of(situation)),
        "group" => format!("group:{}", crate::world_groups::group_of(situation).stored()),
        other => other.into(),
    }
}

/// Puts a value of another type at each key in turn. The call must be rejected and change nothing,
/// or leave the key unchanged if it does not use it. Each key that the script names must be used in
/// at least one situation.
async fn a_wrong_type_changes_nothing(bench: &Bench, script: &str) {
    let (_, situations) = SITUATIONS.iter().find(|(name, _)| *name == script).expect(script);
    let named = named_keys(&text_of(script));
    let mut noticed = BTreeSet::new();
    for situation in *situations {
        bench.restore(&Dump::new()).await;
        let world = World::build_for(bench, situation).await;
        let start = bench.dump().await;
        world.act(bench, script, situation).await.expect(situation);
        let mut keys: BTreeSet<String> = bench.names().await.into_iter().collect();
        keys.extend(start.keys().cloned());
        keys.extend(named.iter().map(|name| in_world(name, situation)));
        for key in keys {
            if notices_wrong_type(bench, &world, &start, (script, situation), &key).await {
                noticed.insert(key);
            }
        }
    }
    for name in named {
        let noticed_in_one = situations.iter().any(|s| noticed.contains(&in_world(&name, s)));
        let prefix_only = PREFIX_ONLY.contains(&(script, &name));
        assert!(
            noticed_in_one != prefix_only,
            "{script} and a wrong {name}: noticed is {noticed_in_one}"
        );
    }
}

/// Returns whether the call notices that the key is of a wrong type.
async fn notices_wrong_type(
    bench: &Bench,
    world: &World,
    start: &Dump,
    (script, situation): (&str, &str),
    key: &str,
) -> bool {
    let is_text = ["biz:", "result:", "requeued:", "outcome:", "shut:", "answer:"]
        .iter()
        .any(|kind| key.starts_with(kind));
    let wrong = b"wrong".to_vec();
    let wrong = if is_text { Content::List(vec![wrong]) } else { Content::Text(wrong) };
    let mut before = start.clone();
    before.insert(key.to_owned(), wrong.clone());
    bench.restore(&before).await;
    let what = format!("{script}, {situation}, a wrong {key}");
    match world.act(bench, script, situation).await {
        Err(BrokerError::Rejected(why)) => {
            assert!(why.contains("WRONGTYPE"), "{what}: {why}");
            assert_eq!(bench.changes(&before).await, [""; 0], "{what} leaves half a transition");
            true
        }
        Err(other) => panic!("{what}: {other:?}"),
        Ok(()) => {
            // For these keys, the test only checks that they are not removed or replaced as a
            // whole.
            let replaced =
                ["result:", "outcome:", "shut:"].iter().any(|kind| key.starts_with(kind))
                    || (script, key) == ("purge", "ledger:c1");
            let after = bench.dump().await;
            assert!(replaced || after.get(key) == Some(&wrong), "{what}: it was overwritten");
            false
        }
    }
}

macro_rules! each_script {
    ($($test:ident = $script:literal),+ $(,)?) => {
        $(async fn $test(bench: Bench) {
            a_wrong_type_changes_nothing(&bench, $script).await;
        })+
        on_both![$($test),+];

        #[test]
        fn every_script_is_tried() {
            let tried = [$($script),+];
            let situations: Vec<&str> = SITUATIONS.iter().map(|(name, _)| *name).collect();
            assert_eq!(situations, tried);
            let tried: BTreeSet<String> = tried.into_iter().map(str::to_owned).collect();
            assert_eq!(tried, all_names());
        }
    };
}

each_script![
    submit_stores_nothing = "submit",
    claim_grants_nothing = "claim",
    collect_takes_nothing = "collect",
    complete_ends_nothing = "complete",
    fail_ends_nothing = "fail",
    release_returns_nothing = "release",
    register_adds_nothing = "register",
    renew_renews_nothing = "renew",
    reap_takes_nothing = "reap",
    leave_removes_nothing = "leave",
    cancel_cancels_nothing = "cancel",
    requeue_adds_nothing = "requeue",
    run_now_moves_nothing = "run_now",
    delete_removes_nothing = "delete",
    enroll_adds_nothing = "enroll",
    disband_cancels_nothing = "disband",
    pause_stops_nothing = "pause",
    limit_sets_nothing = "limit",
    resize_offers_nothing = "resize",
    acquire_takes_nothing = "acquire",
    repay_gives_nothing_back = "repay",
    interrupt_ends_no_wait = "interrupt",
    purge_drops_nothing = "purge",
    retire_drops_nothing = "retire",
    await_registers_no_client = "await",
    list_answers_nothing = "list",
    inspect_answers_nothing = "inspect",
    count_answers_nothing = "count",
    tally_counts_nothing = "tally",
    stats_answers_nothing = "stats",
    fingerprints_answers_nothing = "fingerprints",
    retain_sets_nothing = "retain",
    history_answers_nothing = "history",
    annotate_adds_nothing = "annotate",
    attend_adds_nothing = "attend",
    wish_asks_nothing = "wish",
    operation_add_adds_nothing = "operation_add",
    operation_carry_takes_nothing = "operation_carry",
    operation_decide_confirms_nothing = "operation_decide",
    operation_adopt_adopts_nothing = "operation_adopt",
    audit_notes_nothing = "audit",
    hold_grants_nothing = "hold",
    yield_frees_nothing = "yield",
    recount_begins_nothing = "recount",
    suspend_suspends_nothing = "suspend",
    checkpoint_stores_nothing = "checkpoint",
    demote_counts_nothing = "demote",
    survey_tells_nothing = "survey",
    rescan_asks_nothing = "rescan",
    apply_applies_nothing = "apply",
    relay_removes_nothing = "relay",
    reask_asks_nothing = "reask",
    schedule_stores_nothing = "schedule",
    reschedule_moves_nothing = "reschedule",
    agenda_answers_nothing = "agenda",
    tick_submits_nothing = "tick",
    dispenser_add_adds_nothing = "dispenser_add",
    dispenser_assign_assigns_nothing = "dispenser_assign",
    dispenser_check_renews_nothing = "dispenser_check",
    dispenser_done_ends_nothing = "dispenser_done",
    dispenser_return_returns_nothing = "dispenser_return",
    dispenser_rebuild_removes_nothing = "dispenser_rebuild",
    dispenser_peek_answers_nothing = "dispenser_peek",
];
