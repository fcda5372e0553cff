//! Arguments are stored in Redis, so they cannot borrow.

use std::{borrow::Cow, path::Path};

struct Order;

#[optimus::task]
async fn text(name: &str) {
    println!("{name}");
}

#[optimus::task]
async fn slice(ids: &'static [u64]) {
    println!("{ids:?}");
}

#[optimus::task]
async fn path(path: &Path) {
    println!("{path:?}");
}

#[optimus::task]
async fn value(order: &mut Order) {
    let _ = order;
}

#[optimus::task]
async fn nested(name: Option<&str>) {
    println!("{name:?}");
}

#[optimus::task]
async fn elided(name: Cow<'_, str>) {
    println!("{name}");
}

#[optimus::task]
async fn named<'a>(name: String) {
    println!("{name}");
}

fn main() {
    let _ = text("a").perform_async();
    let _ = slice(&[1]).perform_async();
    let _ = path("a".as_ref()).perform_async();
    let _ = value(&mut Order).perform_async();
    let _ = nested(Some("a")).perform_async();
    let _ = elided("a".into()).perform_async();
    let _ = named("a".to_owned()).perform_async();
}
