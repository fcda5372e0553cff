//! Each mistake is shown in the same run.

#[optimus::task(timeout = "soon", priority = 1000)]
async fn charge(name: &str, (a, b): (u8, u8)) {
    let _ = (name, a, b);
}

fn main() {}
