//! A task of ten arguments, or of sixteen.

use optimus::Worker;

#[optimus::task]
async fn ten(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
) -> Result<u8, String> {
    Ok(a + b + c + d + e + f + g + h + i + j)
}

#[optimus::task]
fn sixteen(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
    m: u8,
    n: u8,
    o: u8,
    p: u8,
) {
    let _ = (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
}

#[tokio::main]
pub(super) async fn main() {
    let worker = Worker::builder("memory://many").only_named_tasks().task(ten).task(sixteen);
    drop(worker.build().unwrap());
    let sum = ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).perform_inline().await.unwrap();
    assert_eq!(sum, 55);
}
