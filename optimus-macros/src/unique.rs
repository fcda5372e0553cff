//! Two tasks of one name in a package don't compile: a worker could run only one of them.
//!
//! A macro sees one function, so the compiler must find the other. Each task implements `Owner` for
//! the type that stands for its name, and asks the compiler who owns the name. With one owner, that
//! is the answer; with two there is none, and the error shows both places. The name's type belongs
//! to this package alone: tasks of other packages are told apart when a worker starts.

use std::{
    env,
    hash::{DefaultHasher, Hash, Hasher},
};

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::{expand::here, model::Model};

/// The assertion that no other task of this package has the name.
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

/// Half of the 128 bits that stand for the name in the package that is compiled.
fn hash(name: &str, half: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    let of = |variable: &str| env::var(variable).unwrap_or_default();
    let compiled = ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"].map(of);
    (name, compiled, half).hash(&mut hasher);
    hasher.finish()
}
