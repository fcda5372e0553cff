//! Tests of what a slice of a source reads next.

use optimus_core::Tier;

use super::*;

const S: Duration = Duration::from_secs(1);
const TIERS: &[Tier] = &[
    Tier { least: 0, most: 0, every: Duration::from_secs(3) },
    Tier { least: 1, most: 5, every: Duration::from_secs(30) },
];
const OPTIONS: SourceOptions = SourceOptions {
    tiers: TIERS,
    idle: Duration::from_secs(24),
    slices: 1,
    page: 10,
    high_water: 100,
    attempts: None,
    remember: S,
    timeout: S,
    archive_after: None,
};

fn plan(tables: usize) -> Plan {
    Plan::new(&cells(tables, 0, 1).0, OPTIONS)
}

fn rows(key: &str) -> PageEnd {
    PageEnd::Rows(key.to_owned())
}

/// Reads the next page; returns its table and tier.
fn read(plan: &mut Plan, now: Duration, end: PageEnd) -> (usize, Kind) {
    let at = plan.next(now).unwrap();
    plan.begin(at, now);
    let (table, kind) = (plan.item(at).cell.table, plan.item(at).kind);
    plan.ended(at, now, end);
    (table, kind)
}

#[test]
fn each_part_of_each_table_is_in_one_slice_and_slices_have_about_as_many() {
    for (tables, slices) in [(1, 16), (16, 16), (1024, 16), (3, 16), (16, 64), (5, 1), (0, 4)] {
        let mut all = Vec::new();
        let mut sizes = Vec::new();
        let mut parts = 0;
        for slice in 0..slices {
            let (cells, its) = cells(tables, slice, slices);
            sizes.push(cells.len());
            all.extend(cells.into_iter().map(|cell| (cell.table, cell.slice)));
            parts = its;
        }
        all.sort_unstable();
        let tables = tables.max(1);
        let each = (0..tables).flat_map(|table| (0..parts).map(move |part| (table, part)));
        assert_eq!(all, each.collect::<Vec<_>>(), "{tables} tables in {slices} slices");
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        assert!(sizes.iter().all(|size| *size > 0));
    }
    assert_eq!((cells(1024, 3, 16).1, cells(1, 3, 16).1, cells(16, 3, 64).1), (1, 16, 4));
}

#[test]
fn tables_take_turns_and_rows_without_failures_come_first() {
    let mut plan = plan(3);
    let mut seen = Vec::new();
    for ms in 0..8_u64 {
        let now = Duration::from_millis(ms);
        let end = if seen.len() % 3 == 1 { rows("7") } else { PageEnd::Empty };
        seen.push(read(&mut plan, now, end));
    }
    let (fresh, failed) = (Kind::Tier(0), Kind::Tier(1));
    let expected = [
        (0, fresh),
        (1, fresh),
        (2, fresh),
        // Its pass goes on before rows with failures are read.
        (1, fresh),
        (0, failed),
        (1, failed),
        (2, failed),
        (0, failed),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_busy_table_keeps_rows_with_failures_waiting_for_one_interval_at_most() {
    let mut plan = plan(1);
    let mut now = Duration::ZERO;
    loop {
        let (_, kind) = read(&mut plan, now, rows("7"));
        if kind == Kind::Tier(1) {
            break;
        }
        now += Duration::from_millis(100);
    }
    assert!(now <= 4 * S, "{now:?}");
}

#[test]
fn an_empty_table_waits_twice_as_long_each_time_up_to_the_bound() {
    let mut plan = Plan::new(&cells(1, 0, 1).0, SourceOptions { tiers: &TIERS[..1], ..OPTIONS });
    let (mut now, mut waits) = (Duration::ZERO, Vec::new());
    for _ in 0..6 {
        read(&mut plan, now, PageEnd::Empty);
        let rest = plan.rest(now).unwrap();
        waits.push(rest.as_secs());
        now += rest;
    }
    assert_eq!(waits, [3, 6, 12, 21, 21, 21], "an eighth before the bound of 24 s");
    read(&mut plan, now, rows("7"));
    assert_eq!(plan.rest(now), Some(Duration::ZERO));
    now += S;
    read(&mut plan, now, PageEnd::Empty);
    assert_eq!(plan.rest(now), Some(2 * S), "a pass begins 3 s after the one before");
}

#[test]
fn each_of_many_empty_tables_is_read_within_the_bound_although_pages_take_time() {
    const TABLES: usize = 256;
    const ONE_TIER: &[Tier] = &[Tier { least: 0, most: u32::MAX, every: Duration::from_secs(2) }];
    let (every, page) = (2 * S, Duration::from_millis(1));
    let idle = 2 * every;
    let options = SourceOptions { tiers: ONE_TIER, idle, ..OPTIONS };
    let mut plan = Plan::new(&cells(TABLES, 0, 1).0, options);
    let mut now = Duration::ZERO;
    let mut read_at = vec![None; TABLES];
    let mut reads = 0;
    while now < 40 * S {
        let Some(at) = plan.next(now) else {
            now += plan.rest(now).unwrap();
            continue;
        };
        plan.begin(at, now);
        // The rows of a busy table come first for a while.
        now += if reads % 100 == 0 { 100 * page } else { page };
        plan.ended(at, now, PageEnd::Empty);
        reads += 1;
        let before = read_at[plan.item(at).cell.table].replace(now);
        let between = now.saturating_sub(before.unwrap_or(now));
        assert!(between <= idle, "{between:?} after {reads} pages");
    }
    assert!(reads <= TABLES * 13, "{reads} pages in 40 s: twelve passes, and those at first");
}

#[test]
fn a_page_that_failed_is_read_again_and_the_pass_stays_where_it_was() {
    let mut plan = Plan::new(&cells(1, 0, 1).0, SourceOptions { tiers: &TIERS[..1], ..OPTIONS });
    read(&mut plan, S, rows("7"));
    read(&mut plan, S, PageEnd::Failed(5 * S));
    assert_eq!((plan.next(5 * S), plan.rest(S)), (None, Some(5 * S)));
    assert_eq!((plan.item(0).after.as_deref(), plan.item(0).failures), (Some("7"), 1));
    plan.all_due(2 * S);
    assert_eq!(plan.next(2 * S), Some(0));
    read(&mut plan, 2 * S, PageEnd::Put(S));
    assert_eq!((plan.item(0).failures, plan.next(3 * S)), (1, Some(0)));
}

#[test]
fn a_request_to_scan_in_the_middle_of_a_pass_begins_another_pass_after_it() {
    let mut plan = Plan::new(&cells(1, 0, 1).0, SourceOptions { tiers: &TIERS[..1], ..OPTIONS });
    read(&mut plan, S, rows("7"));
    plan.all_due(S);
    assert_eq!(plan.item(0).after.as_deref(), Some("7"));
    read(&mut plan, S, PageEnd::Empty);
    assert_eq!((plan.next(S), plan.item(0).after.as_ref()), (Some(0), None));
    read(&mut plan, S, rows("9"));
    read(&mut plan, S, PageEnd::Empty);
    assert_eq!(plan.rest(S), Some(3 * S), "one pass has followed");
}

#[test]
fn a_pass_that_begins_again_forgets_its_key() {
    let mut plan = Plan::new(&cells(1, 0, 1).0, SourceOptions { tiers: &TIERS[..1], ..OPTIONS });
    read(&mut plan, S, rows("7"));
    plan.begin(0, 2 * S);
    plan.begin_again(0, 2 * S);
    plan.ended(0, 2 * S, PageEnd::Failed(S));
    assert_eq!((plan.item(0).after.as_ref(), plan.next(3 * S)), (None, Some(0)));
    read(&mut plan, 3 * S, rows("\"a\""));
    read(&mut plan, 3 * S, PageEnd::Empty);
    assert_eq!(plan.rest(3 * S), Some(3 * S), "a pass begins 3 s after the one before");
}

#[test]
fn a_key_that_is_too_long_to_be_stored_leaves_room_for_others() {
    let tables = ["a".to_owned(), "b".to_owned()];
    let mut plan = plan(2);
    read(&mut plan, S, rows(&"x".repeat(1_000)));
    read(&mut plan, 2 * S, rows("7"));
    assert_eq!(plan.cursors(&tables, 1, 1_000), r#"[1,[["b",0,0,"7"]]]"#);
}

#[test]
fn a_pass_goes_on_where_it_was_stored() {
    let tables = ["a".to_owned(), "b".to_owned()];
    let mut one = plan(2);
    read(&mut one, S, rows("\"k\""));
    let stored = one.cursors(&tables, 1, 1_000);
    let mut two = plan(2);
    two.restore(&stored, &tables, 2);
    assert!(two.items.iter().all(|item| item.after.is_none()), "it was cut otherwise");
    two.restore(&stored, &["x".to_owned(), "a".to_owned()], 1);
    let found: Vec<_> = two.items.iter().filter(|item| item.after.is_some()).collect();
    assert_eq!((found.len(), found[0].cell.table), (1, 1), "tables are known by name");
    assert_eq!(found[0].after.as_deref(), Some("\"k\""));
    two.restore("{", &tables, 1);
    assert_eq!(one.cursors(&tables, 1, 10), "[1,[]]");
}

#[test]
fn archival_comes_last_and_goes_on_while_there_is_much() {
    let options = SourceOptions { archive_after: Some(S), tiers: &TIERS[..1], ..OPTIONS };
    let mut plan = Plan::new(&cells(1, 0, 1).0, options);
    assert_eq!(read(&mut plan, Duration::ZERO, PageEnd::Empty).1, Kind::Tier(0));
    let at = plan.next(Duration::ZERO).unwrap();
    assert_eq!(plan.item(at).kind, Kind::Archive);
    plan.archived(at, Duration::ZERO, 10, 10);
    assert_eq!(plan.next(Duration::ZERO), Some(at));
    plan.archived(at, Duration::ZERO, 9, 10);
    assert_eq!(plan.rest(Duration::ZERO), Some(3 * S));
    plan.all_due(S);
    assert_eq!(plan.item(plan.next(S).unwrap()).kind, Kind::Tier(0));
}

#[test]
fn a_tier_that_is_read_only_once_does_not_stop_the_others() {
    const ONCE: &[Tier] = &[
        Tier { least: 0, most: 0, every: Duration::MAX },
        Tier { least: 1, most: 5, every: Duration::from_secs(30) },
    ];
    let options = SourceOptions { tiers: ONCE, ..OPTIONS };
    let mut plan = Plan::new(&cells(1, 0, 1).0, options);
    assert_eq!(read(&mut plan, S, PageEnd::Empty), (0, Kind::Tier(0)));
    assert_eq!(read(&mut plan, S, PageEnd::Empty), (0, Kind::Tier(1)));
    assert_eq!(plan.next(2 * S), None);
    assert_eq!(read(&mut plan, 40 * S, PageEnd::Empty), (0, Kind::Tier(1)));
}
