//! Whether what a queue keeps is sound in itself: each task in one state, each index beside its
//! records, nothing without its bound. It knows the keys alone, not what was done to them.

mod bounds;
mod content;
mod indexes;
mod line;
mod owners;
mod states;
mod view;

pub use self::{
    bounds::check_lifetimes,
    content::{Content, Dump},
};

/// What is wrong, a sentence each; empty for a sound store.
pub fn fsck(dump: &Dump) -> Vec<String> {
    let view = view::View::new(dump);
    let mut wrong = Vec::new();
    for check in [states::check, line::check, indexes::check, owners::check, bounds::check] {
        check(&view, &mut wrong);
    }
    wrong
}
