//! Tests `OPTIMUS_QUEUES`. Printed queues are read back, and no idle slot is offered twice.

use crate::draw::Draw;

#[path = "../../../optimus-worker/src/config.rs"]
#[allow(
    dead_code,
    reason = "the parsed queues become settings of a worker, which this test does not use"
)]
mod config;
#[path = "../../../optimus-worker/src/shares.rs"]
#[allow(dead_code, reason = "this test divides one turn and has no answers to it")]
mod shares;

use std::time::Instant;

use config::{Order, parse_queues};
use optimus_core::QueueName;
use shares::{Open, Shares};

/// The most idle slots, which are more than a real worker has.
const IDLE_MAX: u64 = 100_000;

/// Checks that any text is read as queues, or refused with the error and the syntax.
pub(crate) fn check(data: &[u8]) {
    let mut draw = Draw(data);
    let (idle, running) = (draw.number() % IDLE_MAX, draw.number() % IDLE_MAX);
    let most = draw.number() % IDLE_MAX;
    let text = String::from_utf8_lossy(draw.0);
    let (order, queues) = match parse_queues(&text) {
        Ok(read) => read,
        Err(problem) => {
            assert!(problem.is_invalid());
            let said = problem.to_string();
            assert!(said.contains("OPTIMUS_QUEUES") && said.contains("critical>default"), "{said}");
            return;
        }
    };
    let printed = print(order, &queues);
    let again = parse_queues(&printed).expect("the text was read once");
    // A single queue has the same order in both forms.
    assert!(again.0 == order || queues.len() == 1);
    assert_eq!(again.1, queues);

    let slots = |number| usize::try_from(number).expect("the number is small");
    let (idle, running, most) = (slots(idle), slots(running), slots(most));
    let mut shares = Shares::new(order, queues.iter().map(|(_, weight)| *weight));
    let open: Vec<Open> = (0..queues.len()).map(|at| Open { at, running }).collect();
    let given = shares.divide(Instant::now(), idle, most, &open);
    let all = given.iter().map(|(_, want)| want).sum::<usize>();
    let largest = idle.min(most);
    assert!(all <= largest && (largest == 0 || all > 0), "{given:?}");
    assert!(given.iter().all(|(at, want)| *at < queues.len() && *want > 0), "{given:?}");
}

/// Returns the text that `OPTIMUS_QUEUES` accepts.
fn print(order: Order, queues: &[(QueueName, u32)]) -> String {
    let strict = queues.iter().map(|(name, _)| name.to_string());
    let weighted = queues.iter().map(|(name, weight)| format!("{name}={weight}"));
    match order {
        Order::Strict => strict.collect::<Vec<_>>().join(">"),
        Order::Weighted => weighted.collect::<Vec<_>>().join(","),
    }
}
