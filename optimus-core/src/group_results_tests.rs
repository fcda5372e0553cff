//! Results that a test has made.

use super::*;

async fn ends(results: &GroupResults<String>) -> Vec<(u32, MemberEnd<String>)> {
    let (mut found, mut ends) = (Vec::new(), results.read());
    while let Some(end) = ends.next().await.unwrap() {
        found.push(end);
    }
    found
}

#[tokio::test]
async fn results_of_a_test_are_read_without_a_store_also_after_their_way_through_json() {
    let given = [
        MemberEnd::Success("one".to_owned()),
        MemberEnd::Failed(TaskState::Dead),
        MemberEnd::Failed(TaskState::Cancelled),
    ];
    let made = GroupResults::of_ends(given.clone());
    let json = serde_json::to_string(&made).unwrap();
    let read: GroupResults<String> = serde_json::from_str(&json).unwrap();
    for results in [made, read] {
        assert_eq!((results.total(), results.failed(), results.cancelled()), (3, 1, 1));
        let found = ends(&results).await;
        assert_eq!(found, (0..).zip(given.clone()).collect::<Vec<_>>());
        assert!(results.all().await.unwrap_err().is_dead());
    }
}

#[tokio::test]
async fn results_of_thousands_of_successes_are_all_there() {
    let made = GroupResults::of(0..2_500);
    assert_eq!(made.all().await.unwrap(), (0..2_500).collect::<Vec<_>>());
    assert!(GroupResults::<u8>::of([]).all().await.unwrap().is_empty());
}
