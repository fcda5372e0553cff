//! The tenant that the service refuses pauses, and the other one is done before it.

use std::time::Duration;

use optimus_testkit::Proc;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_tenant_that_is_refused_does_not_delay_the_other_one() {
    let mut program = Proc::built("two_tenants").start();
    assert!(program.wait(SOON).await.success());
    let output = program.lines();
    let of = |tenant: &str, status: &str| {
        let is_of = |line: &&String| line.starts_with(tenant) && line.ends_with(status);
        output.iter().filter(is_of).count()
    };
    assert_eq!((of("greedy:", "200"), of("modest:", "200")), (20, 10), "{output:#?}");
    // Two calls of a lane are in progress at once, so one more may meet the pause.
    assert!((1..=2).contains(&of("greedy:", "429")), "{output:#?}");
    assert_eq!(of("modest:", "429"), 0);
    let last = |tenant: &str| output.iter().rposition(|line| line.starts_with(tenant));
    assert!(last("modest:") < last("greedy:"), "{output:#?}");
}
