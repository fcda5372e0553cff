//! A name in Redis does not contain type parameters.

use std::fmt::Display;

#[optimus::task]
async fn by_type<T: Display>(value: T) {
    println!("{value}");
}

#[optimus::task]
async fn by_const<const N: usize>(values: [u8; N]) {
    println!("{values:?}");
}

#[optimus::task]
async fn by_impl(value: Box<impl Display>) {
    println!("{value}");
}

#[optimus::task]
async fn by_where(value: u8)
where
    u8: Display,
{
    println!("{value}");
}

fn main() {
    let _ = by_type("a").perform_async();
    let _ = by_const([1, 2]).perform_async();
    let _ = by_impl(Box::new("a")).perform_async();
    let _ = by_where(1).perform_async();
}
