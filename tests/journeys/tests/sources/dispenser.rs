//! Dispensers: items that clients hand out to assignees, some of which vanish.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{Bench, Raw};
use optimus_core::{Added, Client, Dispenser, DispenserError, HELD_MAX, Item, ItemPlace};
use optimus_testkit::{FaultProxy, eventually};
use tokio::task::JoinSet;

const SOON: Duration = Duration::from_secs(60);

/// How many calls of the storm are made at once, and how many items there are.
const CALLS: usize = 2_000;
const ITEMS: usize = 4_000;

/// How long a vanished assignee of the storm holds its items.
const HOLD: Duration = Duration::from_millis(400);

/// Counts the places of all items and the different items in them, at one moment.
const PLACES: &str = "
    local hour = math.floor(redis.call('TIME')[1] / 3600)
    local places, items, known = 0, 0, {}
    for _, found in ipairs({ redis.call('ZRANGE', KEYS[1], 0, -1), redis.call('HKEYS', KEYS[2]),
      redis.call('HKEYS', KEYS[3] .. hour), redis.call('HKEYS', KEYS[3] .. hour - 1) }) do
      for _, item in ipairs(found) do
        places, items = places + 1, items + (known[item] and 0 or 1)
        known[item] = true
      end
    end
    return places .. ' ' .. items";

/// Which items were accepted as done, and how often.
#[derive(Clone, Default)]
struct Finished(Arc<Mutex<HashMap<String, u32>>>);

impl Finished {
    fn note(&self, items: Vec<String>) {
        let mut counts = self.0.lock().unwrap();
        for item in items {
            *counts.entry(item).or_default() += 1;
        }
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// One assignee of the storm, which may vanish before each of its steps.
async fn visit(desk: Dispenser, number: usize, finished: Finished) {
    let mut chance = fastrand::Rng::with_seed(number as u64);
    let name = format!("w{number}");
    let mine = desk.assign(&name, chance.usize(1..6)).await.unwrap();
    let mut ids: Vec<String> = mine.ids().map(str::to_owned).collect();
    match chance.u8(..10) {
        0..=2 => return,
        3 => {
            let half = ids.split_off(ids.len() / 2);
            // On a slow machine, some may have gone to others already.
            drop(desk.give_back(&name, half).await.unwrap());
        }
        4 => {
            desk.assign(&name, 1).await.unwrap();
        }
        5 => {
            // This one comes back after its items have gone to others.
            tokio::time::sleep(HOLD + HOLD / 4).await;
        }
        _ => {}
    }
    let settled = desk.done(&name, &ids).await.unwrap();
    finished.note(settled.accepted);
}

/// Returns how many places there are, and how many items.
async fn in_places(raw: &mut Raw, namespace: &str) -> String {
    let key = |name: &str| format!("{{{namespace}:@d.review:0}}:{name}");
    let keys = [key("pool"), key("holders"), key("done:")];
    let mut words = vec!["EVAL", PLACES, "3"];
    words.extend(keys.iter().map(String::as_str));
    let words: Vec<&[u8]> = words.into_iter().map(str::as_bytes).collect();
    String::from_utf8(raw.run_words(&words).await.remove(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_a_name_that_nobody_uses_say_so() {
    let bench = Bench::on_memory().await;
    let [desk, misspelt] = ["review", "reviews"].map(|name| bench.client.dispenser(name));
    desk.add(["photo"]).await.unwrap();
    assert!(desk.peek().await.unwrap().is_known);
    desk.assign("ann", 1).await.unwrap();
    desk.done("ann", ["photo"]).await.unwrap().all().unwrap();
    assert!(desk.peek().await.unwrap().is_known, "it is empty, and known");
    misspelt.assign("ann", 1).await.unwrap();
    assert!(!misspelt.peek().await.unwrap().is_known, "nobody has added an item");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_calls_at_once_with_vanishing_assignees_finish_each_item_once() {
    let bench = Bench::on_redis().await;
    let desk = |client: &Client| client.dispenser("review").hold(HOLD);
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Bench::shared(&bench.url(), bench.namespace()).await.client);
    }
    let first = desk(&clients[0]);
    first.add((0..ITEMS).map(|number| Item::new(format!("i{number}")))).await.unwrap();

    let one_place = format!("{ITEMS} {ITEMS}");
    let finished = Finished::default();
    let mut visits = JoinSet::new();
    for number in 0..CALLS {
        visits.spawn(visit(desk(&clients[number % 4]), number, finished.clone()));
    }
    let mut raw = Raw::connect(&bench.url()).await;
    // The check takes Redis some ms. So it follows the end of a visit, and the calls go on.
    while let Some(visit) = visits.join_next().await {
        visit.unwrap();
        while let Some(visit) = visits.try_join_next() {
            visit.unwrap();
        }
        assert_eq!(in_places(&mut raw, bench.namespace()).await, one_place, "each has one place");
    }

    eventually("all items are done", SOON, async || {
        let mine = first.assign("last", HELD_MAX).await.unwrap();
        finished.note(first.done("last", mine.ids()).await.unwrap().accepted);
        assert_eq!(in_places(&mut raw, bench.namespace()).await, one_place);
        let left = first.peek().await.unwrap();
        left.open + left.assigned == 0
    })
    .await;
    assert_eq!(finished.count(), ITEMS);
    let counts = finished.0.lock().unwrap();
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_is_lost_assigns_and_ends_the_same_items() {
    let near = Bench::on_redis().await;
    let proxy = FaultProxy::start(&near.url()).await;
    let far = Bench::shared(&proxy.url(), near.namespace()).await;
    let desk = far.client.dispenser("review");
    desk.add(["a", "b", "c", "d"]).await.unwrap();
    let lost = || proxy.drop_reply(1);
    desk.assign("warm", 0).await.unwrap();
    lost();
    assert_eq!(desk.assign("ann", 2).await.unwrap().ids().collect::<Vec<_>>(), ["a", "b"]);
    assert!(proxy.struck());
    desk.done("warm", ["x"]).await.unwrap().all().unwrap_err();
    lost();
    desk.done("ann", ["a"]).await.unwrap().all().unwrap();
    assert!(proxy.struck());
    desk.give_back("warm", ["x"]).await.unwrap().all().unwrap_err();
    lost();
    desk.give_back("ann", ["b"]).await.unwrap().all().unwrap();
    assert!(proxy.struck());
    let counts = near.client.dispenser("review").peek().await.unwrap();
    assert_eq!((counts.open, counts.assigned), (3, 0));
}

#[tokio::test]
async fn calls_that_cannot_be_right_are_refused_before_anything_is_done() {
    let bench = Bench::on_memory().await;
    let desk = bench.client.dispenser("review");
    let long = "x".repeat(257);
    desk.add(["a"]).await.unwrap();
    let is = |problem: DispenserError, text: &str| {
        assert!(problem.is_invalid(), "{problem:?}");
        assert!(problem.to_string().contains(text), "{problem}");
        let public = optimus_core::Error::from(problem);
        assert!(public.is_invalid() && public.to_string().contains(text), "{public}");
    };
    is(desk.add(["b", &long]).await.unwrap_err(), "257 bytes; use 1 to 256");
    is(desk.add(["b", ""]).await.unwrap_err(), "0 bytes");
    is(desk.add([Item::new("b").priority(101)]).await.unwrap_err(), "101 is not between");
    is(desk.assign("", 1).await.unwrap_err(), "0 bytes; use 1 to 128");
    is(desk.check(&long).await.unwrap_err(), "257 bytes");
    is(desk.assign("ann", 501).await.unwrap_err(), "hold 501 items; use 0 to 500");
    assert!(desk.open_items(usize::MAX, 9).await.unwrap().is_empty(), "nothing is there");
    is(desk.open_items(0, 0).await.unwrap_err(), "a page can't have 0 rows; use 1 to 500");
    is(desk.clone().once_by("", "k").assign("ann", 1).await.unwrap_err(), "has 0 bytes");
    is(desk.done("ann", [&long]).await.unwrap_err(), "257 bytes");
    is(desk.clone().once("").assign("ann", 1).await.unwrap_err(), "name of a request has 0");
    is(desk.clone().hold(Duration::ZERO).assign("ann", 1).await.unwrap_err(), "hold is 0ns");
    let years = Duration::from_secs(400 * 24 * 60 * 60);
    is(desk.clone().hold_max(years).peek().await.unwrap_err(), "use 1 ms to 365 days");
    for name in ["", "a b", "{x}", "é"] {
        is(bench.client.dispenser(name).add(["b"]).await.unwrap_err(), "dispenser: ");
    }
    let counts = desk.peek().await.unwrap();
    assert_eq!((counts.open, counts.assigned, counts.assignees), (1, 0, 0));
}

#[tokio::test]
async fn a_dispenser_and_a_queue_of_one_name_share_nothing() {
    let bench = Bench::on_memory().await;
    bench.client.dispenser("default").add(["a"]).await.unwrap();
    let queue = optimus_core::QueueName::new("default").unwrap();
    assert_eq!(bench.client.inspector().counts(&queue).await.unwrap().ready, 0);
    assert!(optimus_core::QueueName::new("@d.default").is_err(), "no queue can have its slot");
}

#[tokio::test]
async fn large_additions_and_rebuilds_go_in_pages() {
    let bench = Bench::on_memory().await;
    let desk = bench.client.dispenser("review");
    let all = |count: u32| (0..count).map(|number| format!("i{number}"));
    let added = desk.add(all(1_200)).await.unwrap();
    assert_eq!(added, Added { added: 1_200, ..Added::default() });
    let again = desk.clone().once("again").add(all(1_201)).await.unwrap();
    assert_eq!(again, Added { added: 1, open: 1_200, ..Added::default() });
    assert_eq!(desk.clone().once("again").add(all(1_201)).await.unwrap(), again);

    let rows = desk.add([7_u64, 8]).await.unwrap();
    assert_eq!((rows.added, desk.add([7, 8]).await.unwrap().open), (2, 2));
    assert_eq!(desk.add(["7", "8"]).await.unwrap().open, 2, "an id has the digits of the number");
    let rebuild = desk.clone().once("nightly").rebuild().await.unwrap();
    let again = desk.clone().once("nightly").rebuild().await.unwrap();
    assert_eq!(again.id(), rebuild.id(), "a repeat begins no other one");
    let elsewhere = bench.client.dispenser("review").rebuild_of(rebuild.id());
    assert_eq!(elsewhere.add(all(700)).await.unwrap().open, 700);
    assert_eq!(rebuild.finish().await.unwrap(), 503);
    let nothing = [0_u64; 0];
    let invented = bench.client.dispenser("review").rebuild_of("invented");
    for ended in
        [rebuild.add(["late"]).await, rebuild.add(nothing).await, invented.add(nothing).await]
    {
        assert!(matches!(ended, Err(DispenserError::RebuildEnded)), "{ended:?}");
    }

    let mut left = 700;
    while left > 0 {
        let mine = desk.assign("ann", HELD_MAX).await.unwrap();
        let settled = desk.done("ann", mine.ids()).await.unwrap();
        assert_eq!(settled.refused, []);
        left -= settled.accepted.len();
    }
    let places = desk.done("bob", all(600)).await.unwrap().refused;
    assert_eq!(places.len(), 600);
    assert!(places.iter().all(|(_, place)| *place == ItemPlace::DoneByOther));
}

#[tokio::test]
async fn a_refused_item_is_an_error_that_names_it() {
    let bench = Bench::on_memory().await;
    let desk = bench.client.dispenser("review");
    desk.add(["a", "b"]).await.unwrap();
    desk.assign("ann", 1).await.unwrap();
    let settled = desk.done("ann", ["a", "b"]).await.unwrap();
    assert_eq!(settled.accepted, ["a"]);
    let problem = settled.all().unwrap_err();
    assert_eq!(problem.to_string(), "the assignee does not hold the item \"b\", which is open");
    assert!(matches!(problem, DispenserError::NotHeld { place: ItemPlace::Open, .. }));
    assert!(!problem.is_invalid());
    let kept = desk.clone().once("one");
    kept.assign("ann", 1).await.unwrap();
    let reused = kept.assign("ann", 2).await.unwrap_err();
    assert!(matches!(&reused, DispenserError::OnceReused { name } if name == "one"), "{reused:?}");
}
