//! Each of five users has a digest at 8:00 in the time zone of their own.

use std::{collections::BTreeSet, time::Duration};

use optimus_testkit::Proc;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn each_user_has_a_digest_at_eight_in_their_time_zone() {
    let mut program = Proc::built("digests").start();
    assert!(program.wait(SOON).await.success());
    let output = program.lines();
    let next: Vec<&String> = output.iter().filter(|line| line.contains(": next at ")).collect();
    assert!(next.len() == 5 && next.iter().all(|line| line.contains(" 08:00:00 ")), "{output:#?}");
    let offsets: BTreeSet<_> = next.iter().filter_map(|line| line.split(' ').next_back()).collect();
    assert!(offsets.len() == 5 && offsets.contains("+08:00"), "{offsets:?}");
    let sent = output.iter().filter(|line| line.contains(": the digest of ")).count();
    assert_eq!(sent, 5, "{output:#?}");
    assert!(output.iter().any(|line| line.ends_with("5 digests were sent")), "{output:#?}");
}
