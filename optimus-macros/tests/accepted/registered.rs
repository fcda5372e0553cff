//! Every task registers itself, even one inside a function, where no other code can name it.

use optimus::__private::TaskDefinition;

#[optimus::task(name = "outer.task")]
pub async fn outer() {}

pub(super) fn main() {
    #[optimus::task]
    async fn inner(n: Vec<Option<u8>>) {
        let _ = n;
    }
    let _ = inner;

    let count = |name| TaskDefinition::registered().filter(|task| task.name() == name).count();
    assert_eq!((count("inner"), count("outer.task")), (1, 1));
}
