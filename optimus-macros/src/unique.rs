//! Two tasks with one name in a package do not compile, because a worker could run only one of
//! them.
//!
//! A macro sees only one function, so the compiler must find the other. Each task implements
//! `Owner` for the type that represents its name, and asks the compiler for the owner of the name.
//! One owner is the answer. Two owners are ambiguous, and the error shows both places. The type of
//! a name belongs to this package only: a worker distinguishes tasks of other packages when it
//! starts.

use std::{
    env,
    hash::{DefaultHasher, Hash, Hasher},
};

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::{expand::here, model::Model};

/// The assertion that no other task of this package has this name.
pub(crate) fn unique(model: &Model) -> TokenStream {
    let name = model.task_name();
    let args = model.args_ident();
    let [high, low] = [0_u8, 1].map(|half| hash(&name.value(), half));
    quote_spanned! {here(name.span())=>
        type __Name = __optimus::TaskName<#high, #low>;
        impl __optimus::Owner<#args> for __Name {}
        const _: () = __optimus::two_tasks_of_a_package_need_two_names::<_, __Name>();
    }
}

/// Half of the 128 bits that represent the name in the current package.
fn hash(name: &str, half: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    let of = |variable: &str| env::var(variable).unwrap_or_default();
    let compiled = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(of);
    (name, compiled, half).hash(&mut hasher);
    hasher.finish()
}
