//! Tests of the options of sources.

use super::*;

const S: Duration = Duration::from_secs(1);
const TIERS: &[Tier] =
    &[Tier { least: 0, most: 4, every: S }, Tier { least: 5, most: 9, every: S }];
const GAP: &[Tier] = &[Tier { least: 0, most: 4, every: S }, Tier { least: 6, most: 9, every: S }];
const LATE: &[Tier] = &[Tier { least: 1, most: 4, every: S }];
const FAST: &[Tier] = &[Tier { least: 0, most: 4, every: Duration::ZERO }];
const OPTIONS: SourceOptions = SourceOptions {
    tiers: TIERS,
    idle: S,
    slices: 16,
    page: 1_000,
    high_water: 10_000,
    attempts: Some(10),
    remember: S,
    timeout: S,
    archive_after: None,
};

fn of(name: &'static str, options: SourceOptions, tables: fn() -> Vec<String>) -> Source {
    let scan = |_| Ok(Box::pin(std::future::ready(Ok(FoundPage::default()))) as RunningScan);
    let parts =
        SourceParts { tables, data: Vec::new, scan, before: None, on_failure: None, archive: None };
    Source::new((name, "here"), options, parts)
}

#[test]
fn options_that_no_worker_can_use_are_refused() {
    of("unpaid", OPTIONS, Vec::new).check().unwrap();
    let wrong = [
        SourceOptions { slices: 0, ..OPTIONS },
        SourceOptions { slices: 1_025, ..OPTIONS },
        SourceOptions { page: 0, ..OPTIONS },
        SourceOptions { page: PAGE_ROWS_MAX + 1, ..OPTIONS },
        SourceOptions { high_water: 0, ..OPTIONS },
        SourceOptions { timeout: Duration::ZERO, ..OPTIONS },
        SourceOptions { tiers: &[], ..OPTIONS },
        SourceOptions { tiers: GAP, ..OPTIONS },
        SourceOptions { tiers: LATE, ..OPTIONS },
        SourceOptions { tiers: FAST, ..OPTIONS },
    ];
    for options in wrong {
        assert!(of("a", options, Vec::new).check().unwrap_err().is_invalid(), "{options:?}");
    }
    assert!(of("a b", OPTIONS, Vec::new).check().is_err());
}

#[test]
fn tables_have_names_of_their_own() {
    let tables = |make| of("unpaid", OPTIONS, make).tables();
    assert_eq!(tables(|| vec!["a".into(), "b".into()]).unwrap(), ["a", "b"]);
    let wrong: [fn() -> Vec<String>; 4] = [
        || vec!["a".into(), "b".into(), "a".into()],
        || vec![String::new()],
        || vec!["a\n".into()],
        || (0..=TABLES_MAX).map(|n| n.to_string()).collect(),
    ];
    for make in wrong {
        assert!(tables(make).unwrap_err().is_invalid());
    }
}
