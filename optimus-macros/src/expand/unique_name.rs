//! Two tasks with one name in a package do not compile, because a worker could run only one of
//! them.
//!
//! A macro sees only one function, so the compiler must find the other. Each task implements
//! `Owner<_, u8>` for the type that represents its name, and asks the compiler for the owner of the
//! name that takes the literal 0. With one owner the literal is a `u8`. With two owners its type is
//! ambiguous, so the literal becomes an `i32`, for which there is no owner. The compiler then
//! reports a missing `impl`, with our message and both places. The type of a name belongs to this
//! package only: a worker distinguishes tasks of other packages when it starts.

use std::{
    env,
    hash::{DefaultHasher, Hash, Hasher},
};

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::{expand::here, parse::function::Model};

/// Generates the assertion that no other task of this package has this name.
pub(crate) fn unique(model: &Model) -> TokenStream {
    let name = model.task_name();
    let args = model.args_ident();
    let [high, low] = [0_u8, 1].map(|half| hash(&name.value(), half));
    quote_spanned! {here(name.span())=>
        type __Name = __optimus::TaskName<#high, #low>;
        #[diagnostic::do_not_recommend]
        impl __optimus::Owner<#args, u8> for __Name {}
        const _: () = __optimus::one_task_has_the_name::<_, __Name, _>(0);
    }
}

/// Returns half of the 128 bits that represent the name in the current package.
fn hash(name: &str, half: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    let of = |variable: &str| env::var(variable).unwrap_or_default();
    let compiled = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(of);
    (name, compiled, half).hash(&mut hasher);
    hasher.finish()
}
