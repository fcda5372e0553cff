//! Every task registers itself, even one inside a function, where no other code can name it.

use optimus::__private::TaskDefinition;

#[optimus::task(name = "outer.task")]
pub async fn outer() {}

fn main() {
    #[optimus::task]
    async fn inner(n: Vec<Option<u8>>) {
        let _ = n;
    }
    let _ = inner;

    let mut names: Vec<_> = TaskDefinition::registered().map(|task| task.name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["inner", "outer.task"]);
}
