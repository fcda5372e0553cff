//! The code of a sharded function: its definition, under its own name, and the function that does
//! the work.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::{
    expand::here,
    post_function::{Param, PostFunction},
    sharded::options::Options,
};

/// The longest rest, unless the function has another.
const IDLE: Duration = Duration::from_secs(8);

/// Returns everything that replaces the function.
pub(crate) fn code(options: &Options, function: &PostFunction) -> TokenStream {
    let (name, run) = (&function.name, run(function));
    let (shards, idle) = (options.shards, options.idle.unwrap_or(IDLE));
    let (seconds, nanos) = (idle.as_secs(), idle.subsec_nanos());
    let walk = if options.is_once { quote!(Once) } else { quote!(Forever) };
    let content = quote! {
        #run
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
    };
    function.code((&options.krate, &quote!(Sharded)), &content, "One round")
}

/// Returns the function that starts one round.
fn run(function: &PostFunction) -> TokenStream {
    let body = function.body_ident();
    let locals: Vec<_> = (0..function.params.len()).map(|n| format_ident!("__p{n}")).collect();
    let values = function.params.iter().map(|Param { ty, is_rows }| {
        let place = here(ty.span());
        if *is_rows {
            quote!()
        } else {
            quote_spanned!(place=> __optimus::shard_data::<#ty>(&__shard)?)
        }
    });
    let data = locals.iter().zip(values).zip(&function.params);
    let data = data.filter(|(_, param)| !param.is_rows);
    let data = data.map(|((local, value), _)| quote!(let #local = #value;));
    let shard = function.params.iter().zip(&locals).find(|(param, _)| param.is_rows);
    let shard = shard.map(|(Param { ty, .. }, local)| {
        quote_spanned!(here(ty.span())=> let #local = <#ty as __optimus::IsShard>::of(__shard);)
    });
    let output = function.returned();
    let checked = quote_spanned!(here(output.span())=> __optimus::round_of::<#output>);
    let started = quote_spanned! {here(function.sig.ident.span())=>
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
