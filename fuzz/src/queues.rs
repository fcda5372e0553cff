//! `OPTIMUS_QUEUES`: what is printed is read back, and each idle slot is offered once.

use crate::draw::Draw;

#[path = "../../optimus-worker/src/config.rs"]
#[allow(dead_code, reason = "what is parsed goes into a worker's settings, which have no parser")]
mod config;

use config::{Order, parse_queues};

/// More than a machine has.
const IDLE_MAX: u64 = 100_000;

/// Any text is read as queues, or refused with the fault and the syntax.
pub(crate) fn check(data: &[u8]) {
    let mut draw = Draw(data);
    let (idle, random) = (draw.number() % IDLE_MAX, draw.number());
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
    let separator = if order == Order::Strict { ">" } else { "," };
    let printed: Vec<String> =
        queues.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
    let again = parse_queues(&printed.join(separator)).expect("it was read before");
    // A single queue is as strict as it is weighted.
    assert!(again.0 == order || queues.len() == 1);
    assert_eq!(again.1, queues);

    let weights: Vec<u32> = queues.iter().map(|(_, weight)| *weight).collect();
    let idle = usize::try_from(idle).expect("it is small");
    let random = usize::try_from(random).unwrap_or(usize::MAX);
    let shares = order.divide(idle, &weights, random);
    assert_eq!(shares.iter().sum::<usize>(), idle);
}
