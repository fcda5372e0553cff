//! An argument moves between threads. The macro knows `Rc` by its name.
//!
//! Of a type that hides it the compiler reports the bound `Send` twice in the generated code first:
//! it checks each `impl` before any assertion, and its order can't be set.

use std::rc::Rc;

use optimus::BoxError;

#[optimus::task]
async fn charge(order: Rc<u64>) -> Result<(), BoxError> {
    drop(order);
    Ok(())
}

#[optimus::task]
async fn charge_all(orders: Vec<std::rc::Rc<String>>) -> Result<(), BoxError> {
    drop(orders);
    Ok(())
}

fn main() {
    let _ = charge(Rc::new(7)).perform_async();
    let _ = charge_all(Vec::new()).perform_async();
}
