//! `attend` and `wish`: which processes are there, and what they are asked for.

use optimus_core::{
    WorkerId,
    broker::{Asked, Attendance, BrokerError, Refusal},
};
use redis::cmd;

use crate::{acts::ms, bench::Bench, world_fleet::attend};

/// Returns the ids of all processes, and how many pages of two they need.
async fn listed(bench: &Bench) -> (Vec<String>, usize) {
    let (mut ids, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let (rows, more, _) = bench.now().processes(&bench.queue, &after, 2).await.unwrap();
        ids.extend(rows.iter().map(|row| row.id.to_string()));
        pages += 1;
        if !more {
            return (ids, pages);
        }
        after.clone_from(ids.last().unwrap());
    }
}

async fn processes_are_listed_by_pages_until_they_leave_or_are_not_heard_from(bench: Bench) {
    let ids = ["d", "a", "c", "b", "e"].map(WorkerId::from_stored);
    for id in &ids {
        attend(&bench, 0, id).await.unwrap();
    }
    assert_eq!(listed(&bench).await, (["a", "b", "c", "d", "e"].map(String::from).into(), 3));
    let (rows, more, all) = bench.now().processes(&bench.queue, "c", 128).await.unwrap();
    assert_eq!((rows.len(), more, all), (2, false, 5));
    assert_eq!(
        (rows[0].description.as_str(), rows[0].doing.as_str()),
        (r#"{"host":"vm-7"}"#, r#"{"slots":4}"#)
    );
    bench.at(1).leave_fleet(&bench.queue, &ids[0]).await.unwrap();
    attend(&bench, 50_000, &ids[1]).await.unwrap();
    attend(&bench, 60_001, &ids[2]).await.unwrap();
    assert_eq!(listed(&bench).await.0, ["a", "c"], "the others were not heard from for 60 s");
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn a_process_hears_the_last_wish_until_it_leaves(bench: Bench) {
    let id = WorkerId::from_stored("w");
    let absent = bench.at(0).wish(&bench.queue, &id, "quiet").await;
    assert!(matches!(absent, Err(BrokerError::Refused(Refusal::Absent, _))), "{absent:?}");
    assert!(bench.names().await.is_empty());
    assert_eq!(attend(&bench, 0, &id).await.unwrap(), (0, String::new()));
    bench.at(1).wish(&bench.queue, &id, "quiet").await.unwrap();
    bench.at(1).wish(&bench.queue, &id, "slots 3").await.unwrap();
    // Two wishes leave one wakeup.
    let (fleet, listener) = ((&bench.queue, &id), bench.now().blocking("wakeups"));
    assert_eq!(bench.list("wake:w").await, ["1"]);
    let ttl: i64 = bench.raw(cmd("PTTL").arg(bench.key("wake:w"))).await;
    assert!(ttl > 0, "a wakeup that nobody reads expires");
    let asked = listener.wait_until_asked(&[], fleet, ms(5_000)).await.unwrap();
    assert_eq!(asked, Some(Asked::Attend));
    assert_eq!(attend(&bench, 2, &id).await.unwrap(), (2, "slots 3".to_owned()));
    assert_eq!(attend(&bench, 3, &id).await.unwrap(), (2, "slots 3".to_owned()));
    bench.at(4).leave_fleet(&bench.queue, &id).await.unwrap();
    assert!(bench.names().await.is_empty());
}

async fn an_idle_process_that_is_listed_for_longer_stays_listed_when_others_attend(bench: Bench) {
    let [idle, busy] = ["idle", "busy"].map(WorkerId::from_stored);
    let (id, gone_after) = (&idle, ms(240_000));
    let attendance = Attendance { id, gone_after, description: "{}", doing: "{}" };
    bench.at(0).attend(&bench.queue, attendance).await.unwrap();
    attend(&bench, 0, &busy).await.unwrap();
    let left: i64 = bench.raw(cmd("PTTL").arg(bench.key("fleet"))).await;
    assert!(left > 200_000, "{left}");
    let again = WorkerId::from_stored("again");
    attend(&bench, 100_000, &again).await.unwrap();
    assert_eq!(listed(&bench).await.0, ["again", "idle"], "the busy one was not heard from");
}

on_both![
    an_idle_process_that_is_listed_for_longer_stays_listed_when_others_attend,
    processes_are_listed_by_pages_until_they_leave_or_are_not_heard_from,
    a_process_hears_the_last_wish_until_it_leaves,
];
