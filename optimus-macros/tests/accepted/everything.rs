//! A task can use every option and every kind of parameter at once.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub)]

use std::{error::Error, fmt, sync::Arc, time::Duration};

use optimus::{Backoff, Context, Data, LaneFailure, OnLost, Rate, Task, TaskFn, TaskOptions};
use serde::{Deserialize, Serialize};

/// An order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    id: u64,
    parts: (String, u8),
}

/// The receipt for the customer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    text: String,
}

/// A payment service.
#[derive(Clone)]
pub struct Stripe(Arc<str>);

/// The error of a declined payment.
#[derive(Debug)]
pub struct Declined;

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("declined")
    }
}

impl Error for Declined {}

/// Charges an order.
#[optimus::task(
    name = "billing.charge",
    queue = "billing",
    priority = -5,
    timeout = "1h30m",
    max_retry = 7,
    backoff = "exponential(base = 1s, cap = 10m, jitter = 0.5)",
    biz_id = "{order.id}-{order.parts.0}-{kind:?}-{{}}",
    biz_window = 3600,
    result_ttl = "7d",
    expires_in = "1d",
    on_lost = "dead",
    max_losses = 5,
    lane = "user-{order.parts.1:>02}",
    lane_width = 65535,
    on_lane_failure = "block",
    limit = "stripe",
    rate = "100/s",
    burst = 10,
    max_working = 8,
    cost = 2,
    lane_rate = "600/m",
    lane_burst = 3,
    history = "180d",
    crate = ::optimus,
)]
pub async fn charge(
    mut order: Order,
    #[data] stripe: Stripe,
    ctx: Context,
    #[serde(default)] kind: Option<String>,
) -> Result<Receipt, Declined> {
    order.id += 1;
    tokio::task::yield_now().await;
    match &kind {
        Some(kind) => {
            Ok(Receipt { text: format!("{} {} {kind} {}", order.id, stripe.0, ctx.attempt()) })
        }
        None => Err(Declined),
    }
}

fn options<A, F: TaskFn<A>>(_: F) -> (&'static str, TaskOptions, [Option<String>; 2]) {
    let json = r#"{"order":{"id":7,"parts":["a",1]}}"#;
    let task: F::Task = serde_json::from_str(json).unwrap();
    (F::Task::NAME, F::Task::options(), [task.biz_id(), task.lane()])
}

#[tokio::main]
pub(super) async fn main() {
    let (name, options, [biz_id, lane]) = options(charge);
    assert_eq!(name, "billing.charge");
    assert_eq!(biz_id.unwrap(), "7-a-None-{}");
    assert_eq!(lane.unwrap(), "user-01");
    let second = Duration::from_secs(1);
    let backoff = Backoff::Exponential { base: second, cap: 600 * second, jitter: 0.5 };
    let expected = TaskOptions::new()
        .queue("billing")
        .priority(-5)
        .timeout(5_400 * second)
        .max_retry(7)
        .backoff(backoff)
        .biz_window(3_600 * second)
        .result_ttl(7 * 86_400 * second)
        .expires_in(86_400 * second)
        .on_lost(OnLost::Dead)
        .max_losses(5)
        .lane_width(u16::MAX)
        .on_lane_failure(LaneFailure::Block)
        .limit("stripe")
        .rate(Rate::per_second(100))
        .burst(10)
        .max_working(8)
        .cost(2)
        .lane_rate(Rate::per_second(10))
        .lane_burst(3)
        .history(180 * 86_400 * second);
    assert_eq!(options, expected);

    let order = Order { id: 7, parts: ("a".to_owned(), 1) };
    let call = charge(order.clone(), Some("card".to_owned())).queue("bulk");
    assert!(format!("{:?}", call.clone()).contains("card"));
    let data = Data::new().with(Stripe("stripe".into()));
    let receipt = call.perform_inline_with(data.clone()).await.unwrap();
    assert_eq!(receipt.text, "8 stripe card 1");
    let error = charge(order, None).perform_inline_with(data).await.unwrap_err();
    assert!(error.is::<Declined>());
}
