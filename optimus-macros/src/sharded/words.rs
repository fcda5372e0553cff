//! What the compiler says of a function that can't be sharded.

use crate::post_function::Words;

pub(super) const WORDS: Words = Words {
    rows: "Shard",
    one_parameter_has_the_rows: "a sharded function takes one `shard: optimus::Shard`, which \
        says on which rows it works",
    it_is_not_main: "`main` starts the program, so it can't be sharded: move the work to a \
        function with another name",
    it_is_async: "a sharded function is an `async fn`, so that a round can be dropped when the \
        worker loses the shard; run code that blocks with `tokio::task::spawn_blocking`",
    it_returns_a_result: "a sharded function returns `Result<Round, E>`: `Round::Again` if there \
        may be more to do, `Round::Idle` if it found nothing",
    it_is_free: "a sharded function is a free function: move it out of the `impl`, and take what \
        it needs of `self` as `#[data]`",
    nobody_passes_arguments: "nobody calls a sharded function with arguments: put `#[data]` on \
        a value of the worker",
};
