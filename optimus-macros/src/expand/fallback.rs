//! A replacement for a function that cannot be a task, so that one mistake gives one error: callers
//! find a function with the same name and arguments.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    expand::body_fn,
    parse::function::{Model, Param},
    validate_function::result_borrows,
};

/// Generates the function's name and arguments, with an empty body.
pub(crate) fn stub(model: &Model) -> TokenStream {
    if model.is_main() {
        // The compiler would also refuse any other function with that name.
        return quote! {
            fn main() {}
        };
    }
    let Model { vis, options, receiver, .. } = model;
    let (krate, cfg, name) = (&options.krate, &model.attrs.cfg, &model.sig.ident);
    let (params, _, clause) = model.sig.generics.split_for_impl();
    let receiver = receiver.iter();
    let types = model.arguments().map(|Param { ty, .. }| ty);
    // The compiler would also refuse such a result, with its own error.
    let body = (!result_borrows(model)).then(|| body_fn(model));
    quote! {
        #(#cfg)*
        #[doc(hidden)]
        #[allow(unused, clippy::all, clippy::pedantic, reason = "its definition was refused")]
        #vis fn #name #params (#(#receiver,)* #(_: #types),*)
            -> #krate::Call<#krate::__private::Refused>
        #clause
        {
            ::core::unreachable!()
        }
        #body
    }
}
