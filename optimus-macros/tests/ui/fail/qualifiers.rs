//! A worker cannot call functions with these qualifiers.

#[optimus::task]
unsafe fn dangerous() {}

#[optimus::task]
extern "C" fn foreign() {}

#[optimus::task]
const fn constant() {}

fn main() {
    let _ = (dangerous(), foreign(), constant());
}
