//! Turns a checked model into code: the function that makes calls, the function that does the work,
//! and the hidden type of the arguments with its impls.

mod arguments_type;
pub(crate) mod fallback;
mod options;
mod task_impl;
mod unique_name;

use proc_macro2::{Span, TokenStream};
use quote::quote;

use self::{
    arguments_type::{args_struct, codec, parameters, value_impls},
    task_impl::task_impl,
    unique_name::unique,
};
use crate::parse::function::{Model, Param};

/// Generates everything that replaces the function.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let items = [call_fn(model), body_fn(model), args_struct(model), impls(model)];
    items.into_iter().collect()
}

/// Generates the function that users call: it takes arguments and returns a `Call`.
fn call_fn(model: &Model) -> TokenStream {
    let Model { vis, options, attrs, .. } = model;
    let (cfg, attrs) = (&attrs.cfg, &attrs.call);
    let (krate, name, args) = (&options.krate, &model.sig.ident, model.args_ident());
    let idents: Vec<_> = model.arguments().map(|param| &param.ident).collect();
    let types = model.arguments().map(|param| &param.ty);
    quote! {
        #(#cfg)*
        #(#attrs)*
        #[allow(dead_code, reason = "a worker runs a task that its own program never calls")]
        #[allow(clippy::too_many_arguments, reason = "the task's own parameters")]
        #vis fn #name(#(#idents: #types),*) -> #krate::Call<#args> {
            #krate::Call::new(#args { #(#idents),* })
        }
    }
}

/// Generates the original function, under another name.
pub(crate) fn body_fn(model: &Model) -> TokenStream {
    let Model { vis, attrs, block, .. } = model;
    let (cfg, attrs) = (&attrs.cfg, &attrs.body);
    let mut sig = model.sig.clone();
    sig.ident = model.body_ident();
    sig.inputs =
        model.receiver.iter().map(|receiver| syn::FnArg::Receiver(receiver.clone())).collect();
    for param in &model.params {
        let (Param { pat, attrs, .. }, ty) = (param, param.body_type());
        // The caller's process reads it, although the body may not.
        let read = model.is_in_template(param).then(
            || quote!(#[allow(unused_variables, reason = "a template of the task reads it")]),
        );
        sig.inputs.push(syn::parse_quote!(#read #(#attrs)* #pat: #ty));
    }
    let doc = format!(
        "The body of [`{}`]: runs at once, without a queue, a timeout or retries.",
        model.plain_name()
    );
    quote! {
        #(#cfg)*
        #[doc = #doc]
        #(#attrs)*
        #[allow(
            dead_code, unreachable_pub, private_interfaces,
            clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unused_async,
            clippy::missing_errors_doc, clippy::missing_panics_doc,
            reason = "arguments come from Redis, owned, and the task shows the other lints"
        )]
        #vis #sig #block
    }
}

fn impls(model: &Model) -> TokenStream {
    let (krate, cfg, args) = (&model.options.krate, &model.attrs.cfg, model.args_ident());
    let (codec, helpers, task) = (codec(model), value_impls(model), task_impl(model));
    let (unique, parameters) = (unique(model), parameters(model));
    quote! {
        #(#cfg)*
        #[allow(unused, nonstandard_style, clippy::all, clippy::pedantic, reason = "generated")]
        const _: () = {
            use #krate::__private as __optimus;
            #codec
            #helpers
            #task
            #parameters
            #unique
            __optimus::inventory::submit! { __optimus::TaskDefinition::of::<#args>() }
        };
    }
}

/// Returns the location of `place` without the hygiene of a macro around it, so that `self` is
/// always the generated one.
pub(crate) fn here(place: Span) -> Span {
    Span::call_site().located_at(place)
}
