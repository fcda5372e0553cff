//! What the compiler says of a function that can't be a source.

use crate::post_function::Words;

pub(super) const WORDS: Words = Words {
    rows: "Page",
    one_parameter_has_the_rows: "a source takes one `page: optimus::Page<i64>`, which says \
        which rows to read; `i64` is the type of the table's key",
    it_is_not_main: "`main` starts the program, so it can't be a source: move the query to a \
        function with another name",
    it_is_async: "a source is an `async fn`, so that a page can be dropped when the worker loses \
        its slice; run code that blocks with `tokio::task::spawn_blocking`",
    it_returns_a_result: "a source returns `Result<Vec<Found<K>>, E>`: the rows of the page, with \
        their tasks",
    it_is_free: "a source is a free function: move it out of the `impl`, and take what it needs of \
        `self` as `#[data]`",
    nobody_passes_arguments: "nobody calls a source with arguments: put `#[data]` on a value of \
        the worker",
};
