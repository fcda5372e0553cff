//! Which options are accepted, and which of them a call overrides.

use super::*;

const DAY: Duration = Duration::from_secs(86_400);
const NANO: Duration = Duration::from_nanos(1);

#[expect(clippy::large_types_passed_by_value, reason = "a test may copy it")]
fn refusal(options: TaskOptions) -> String {
    let problem = options.validate("charge").expect_err("it is invalid");
    assert!(problem.is_invalid() && problem.to_string().contains("charge"), "{problem}");
    problem.to_string()
}

#[test]
fn each_option_is_accepted_up_to_its_limit() {
    let options = TaskOptions::new;
    let longest = DAY * 1_800;
    for (edge, beyond) in [(longest, longest + NANO), (NANO, Duration::ZERO)] {
        options().timeout(edge).validate("charge").unwrap();
        options().biz_window(edge).validate("charge").unwrap();
        options().expires_in(edge).validate("charge").unwrap();
        assert!(refusal(options().timeout(beyond)).contains("timeout"));
        assert!(refusal(options().biz_window(beyond)).contains("biz_window"));
        assert!(refusal(options().expires_in(beyond)).contains("expires_in"));
    }
    options().result_ttl(Duration::ZERO).validate("charge").unwrap();
    options().result_ttl(longest).validate("charge").unwrap();
    assert!(refusal(options().result_ttl(longest + NANO)).contains("result_ttl"));
    for (edge, beyond) in [(100, 101), (-100, -101)] {
        options().priority(edge).validate("charge").unwrap();
        assert!(refusal(options().priority(beyond)).contains("priority"));
    }
    options().max_losses(1).validate("charge").unwrap();
    assert!(refusal(options().max_losses(0)).contains("max_losses"));
    options().lane_width(u16::MAX).validate("charge").unwrap();
    assert!(refusal(options().lane_width(0)).contains("lane_width"));
    options().cost(u32::MAX).limit("stripe-eu").validate("charge").unwrap();
    assert!(refusal(options().cost(0)).contains("cost"));
    assert!(refusal(options().limit("a b")).contains("limit's name"));
    assert!(refusal(options().max_working(0)).contains("max_working"));
    assert!(refusal(options().rate(Rate::per_second(0))).contains("rate of 0"));
    assert!(refusal(options().lane_burst(2)).contains("lane_burst"));
    assert!(refusal(options().queue("a b")).contains("queue"));
    for days in [1, 366] {
        let kept = options().history(DAY * days);
        kept.validate("charge").unwrap();
        assert_eq!(kept.history_days(), Some(days));
    }
    for time in [Duration::ZERO, DAY / 2, DAY + NANO, DAY * 367] {
        assert!(refusal(options().history(time)).contains("1 to 366 whole days"));
    }
    let spinning = Backoff::Fixed { wait: Duration::ZERO, jitter: 0.0 };
    assert!(refusal(options().backoff(spinning)).contains("backoff"));
}

#[test]
fn a_call_overrides_its_options_and_keeps_the_others_of_the_definition() {
    let definition = TaskOptions::new()
        .queue("bulk")
        .priority(1)
        .timeout(DAY)
        .max_retry(9)
        .backoff(Backoff::Fixed { wait: DAY, jitter: 0.5 })
        .biz_window(DAY)
        .result_ttl(DAY)
        .expires_in(DAY)
        .on_lost(OnLost::Dead)
        .max_losses(7)
        .lane_width(8)
        .on_lane_failure(LaneFailure::Block)
        .cost(3)
        .lane_rate(Rate::per_hour(1))
        .lane_burst(2);
    assert_eq!(CallOptions::default().over(definition), definition);
    assert_eq!(definition.queue_name(), "bulk");
    assert_eq!(definition.backoff_formula(), Backoff::Fixed { wait: DAY, jitter: 0.5 });
    let call = CallOptions {
        priority: Some(2),
        timeout: Some(NANO),
        max_retry: Some(0),
        backoff: Some(Backoff::Sidekiq),
        biz_window: Some(NANO),
        result_ttl: Some(NANO),
        expires_in: Some(NANO),
        on_lost: Some(OnLost::Retry),
        max_losses: Some(4),
        lane_width: Some(9),
        on_lane_failure: Some(LaneFailure::Skip),
        lane_rate: Some(Rate::per_second(5)),
        cost: Some(4),
        ..CallOptions::default()
    };
    let expected = TaskOptions::new()
        .queue("bulk")
        .priority(2)
        .timeout(NANO)
        .max_retry(0)
        .biz_window(NANO)
        .result_ttl(NANO)
        .expires_in(NANO)
        .max_losses(4)
        .lane_width(9)
        .cost(4)
        .lane_rate(Rate::per_second(5))
        .lane_burst(2);
    assert_eq!(call.over(definition), expected);
}
