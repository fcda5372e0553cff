//! Functions that a worker cannot call.

#[optimus::task]
unsafe fn dangerous() {}

#[optimus::task]
extern "C" fn foreign() {}

#[optimus::task]
const fn constant() {}

fn main() {
    let _ = (dangerous(), foreign(), constant());
}
