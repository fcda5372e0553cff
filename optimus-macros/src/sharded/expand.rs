//! The code of a sharded function: its definition, under its own name, and the function that does
//! the work.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{ReturnType, spanned::Spanned};

use crate::{
    expand::here,
    sharded::function::{Model, Param},
};

/// The longest rest, unless the function has another.
const IDLE: Duration = Duration::from_secs(8);

/// Returns everything that replaces the function.
pub(crate) fn code(model: &Model) -> TokenStream {
    let Model { cfg, docs, vis, options, .. } = model;
    let (krate, ident, name) = (&options.krate, &model.sig.ident, model.name());
    let (shards, idle) = (options.shards, options.idle.unwrap_or(IDLE));
    let (seconds, nanos) = (idle.as_secs(), idle.subsec_nanos());
    let walk = if options.is_once { quote!(Once) } else { quote!(Forever) };
    let data = model.params.iter().filter(|param| !param.is_shard).map(|param| &param.ty);
    let (body, run) = (body(model), run(model));
    quote! {
        #(#cfg)*
        #(#docs)*
        #[must_use]
        #[allow(dead_code, reason = "a worker serves what its own program never names")]
        #vis const fn #ident() -> #krate::Sharded {
            use #krate::__private as __optimus;
            #run
            fn __data() -> ::std::vec::Vec<__optimus::DataKey> {
                ::std::vec![#(__optimus::DataKey::of::<#data>()),*]
            }
            __optimus::Sharded::new(
                (#name, ::core::concat!(::core::file!(), ":", ::core::line!())),
                __optimus::ShardedOptions {
                    shards: #shards,
                    idle: ::core::time::Duration::new(#seconds, #nanos),
                    walk: __optimus::Walk::#walk,
                },
                __data,
                __run,
            )
        }
        #body
        #(#cfg)*
        const _: () = {
            #krate::__private::inventory::submit! { #ident() }
        };
    }
}

/// Returns a definition that compiles where the function was refused, so that one mistake causes
/// one error.
pub(crate) fn stub(model: &Model) -> TokenStream {
    let Model { cfg, vis, options, .. } = model;
    let (krate, ident) = (&options.krate, &model.sig.ident);
    if ident == "main" {
        return quote!(
            fn main() {}
        );
    }
    quote! {
        #(#cfg)*
        #[doc(hidden)]
        #[allow(dead_code, clippy::all, clippy::pedantic, reason = "its definition was refused")]
        #vis fn #ident() -> #krate::Sharded {
            ::core::unreachable!()
        }
    }
}

/// Returns the original function, under another name.
fn body(model: &Model) -> TokenStream {
    let Model { cfg, attrs, vis, block, .. } = model;
    let mut sig = model.sig.clone();
    sig.ident = model.body_ident();
    let doc = format!("One round of [`{}`], without a worker.", model.sig.ident);
    quote! {
        #(#cfg)*
        #[doc = #doc]
        #(#attrs)*
        #[allow(
            dead_code, clippy::needless_pass_by_value, clippy::too_many_arguments,
            clippy::unused_async, clippy::missing_errors_doc, clippy::missing_panics_doc,
            reason = "a worker calls it"
        )]
        #vis #sig #block
    }
}

/// Returns the function that starts one round.
fn run(model: &Model) -> TokenStream {
    let body = model.body_ident();
    let locals: Vec<_> = (0..model.params.len()).map(|n| format_ident!("__p{n}")).collect();
    let values = model.params.iter().map(|Param { ty, is_shard }| {
        let place = here(ty.span());
        if *is_shard {
            quote!()
        } else {
            quote_spanned!(place=> __optimus::shard_data::<#ty>(&__shard)?)
        }
    });
    let data = locals.iter().zip(values).zip(&model.params);
    let data = data.filter(|(_, param)| !param.is_shard);
    let data = data.map(|((local, value), _)| quote!(let #local = #value;));
    let shard = model.params.iter().zip(&locals).find(|(param, _)| param.is_shard);
    let shard = shard.map(|(Param { ty, .. }, local)| {
        quote_spanned!(here(ty.span())=> let #local = <#ty as __optimus::IsShard>::of(__shard);)
    });
    let output = match &model.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let checked = quote_spanned!(here(output.span())=> __optimus::round_of::<#output>);
    let started = quote_spanned! {here(model.sig.ident.span())=>
        ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
            #checked(#body(#(#locals),*).await)
        }))
    };
    quote! {
        fn __run(
            __shard: __optimus::Shard,
        ) -> ::core::result::Result<__optimus::RunningRound, __optimus::BoxError> {
            #(#data)*
            #shard
            #started
        }
    }
}
