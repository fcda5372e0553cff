//! One run shows every mistake.

#[optimus::task(timeout = "soon", priority = 1000)]
async fn charge(name: &str, (a, b): (u8, u8)) {
    let _ = (name, a, b);
}

fn main() {}
