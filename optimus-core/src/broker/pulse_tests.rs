//! Tests on tokio's paused clock, over a stream in memory with a buffer of 16 bytes.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{sleep, timeout};

use super::*;

const LONG: Duration = Duration::from_secs(60);
/// Shorter than the silence that is allowed.
const STEP: Duration = Duration::from_secs(5);

fn watched() -> (Watched<DuplexStream>, DuplexStream, Arc<Pulse>) {
    let (near, far) = duplex(16);
    let pulse = Arc::new(Pulse::new());
    (Watched::new(near, pulse.clone()), far, pulse)
}

/// Returns how long a wait takes to detect silence; `None` if the wait continues.
async fn stops_after(pulse: &Pulse) -> Option<Duration> {
    let begun = Instant::now();
    timeout(LONG, pulse.stops()).await.ok().map(|()| begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn silence_is_counted_from_the_request() {
    let pulse = Pulse::new();
    sleep(LONG).await;
    assert_eq!(stops_after(&pulse).await, Some(SILENCE_MAX));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_longer_is_awaited_while_bytes_of_it_come() {
    let (mut near, mut far, pulse) = watched();
    let mut answer = [0; 20];
    let server = async {
        for _ in 0..20 {
            sleep(STEP).await;
            far.write_all(b"x").await.unwrap();
        }
    };
    let exchange = async { tokio::join!(near.read_exact(&mut answer), server) };
    tokio::select! {
        biased;
        (read, ()) = exchange => assert_eq!(read.unwrap(), 20),
        () = pulse.stops() => panic!("the pulse stopped while bytes came"),
    }
    assert_eq!(stops_after(&pulse).await, Some(SILENCE_MAX));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_longer_is_awaited_while_bytes_of_it_go() {
    let (mut near, mut far, pulse) = watched();
    let request = [0; 16 + 20];
    let mut one = [0];
    let server = async {
        for _ in 0..20 {
            sleep(STEP).await;
            far.read_exact(&mut one).await.unwrap();
        }
    };
    let exchange = async { tokio::join!(near.write_all(&request), server) };
    tokio::select! {
        biased;
        (written, ()) = exchange => written.unwrap(),
        () = pulse.stops() => panic!("the pulse stopped while bytes went"),
    }
    assert_eq!(stops_after(&pulse).await, Some(SILENCE_MAX));
}

#[tokio::test(start_paused = true)]
async fn bytes_in_a_buffer_that_is_not_read_have_not_moved() {
    let (mut near, _far, pulse) = watched();
    let others = async {
        for _ in 0..16 {
            sleep(Duration::from_secs(1)).await;
            near.write_all(b"x").await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        stopped = stops_after(&pulse) => assert_eq!(stopped, Some(SILENCE_MAX)),
        () = others => {}
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_bytes_get_the_time_of_a_slow_link() {
    let pulse = Pulse::new();
    let four = pulse.awaits(4 * RATE_MIN);
    assert_eq!(stops_after(&pulse).await, Some(SILENCE_MAX + Duration::from_secs(4)));
    drop(four);
    assert_eq!(stops_after(&pulse).await, Some(SILENCE_MAX));
    let _much = pulse.awaits(usize::MAX / 2);
    assert_eq!(pulse.patience(), PATIENCE_MAX);
}
