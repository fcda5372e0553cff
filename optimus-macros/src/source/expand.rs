//! The code of a source: its definition, under its own name, and the function that reads a page.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Path, ReturnType, spanned::Spanned};

use crate::{
    expand::here,
    source::function::{Model, Param},
};

const PAGE: u32 = 1_000;
const HIGH_WATER: u64 = 10_000;
const REMEMBER: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns everything that replaces the function.
pub(crate) fn code(model: &Model) -> TokenStream {
    let Model { cfg, docs, vis, options, .. } = model;
    let (krate, ident, name) = (&options.krate, &model.sig.ident, model.name());
    let data = model.params.iter().filter(|param| !param.is_page).map(|param| &param.ty);
    let page = model.params.iter().find(|param| param.is_page).map(|param| &param.ty);
    let key = page.map(|ty| quote_spanned!(here(ty.span())=> <#ty as __optimus::IsPage>::Key));
    let (body, scan, values) = (body(model), scan(model), values(model));
    let (tables, hooks) = (tables(model), hooks(model));
    quote! {
        #(#cfg)*
        #(#docs)*
        #[must_use]
        #[allow(dead_code, reason = "a worker serves what its own program never names")]
        #vis const fn #ident() -> #krate::Source {
            use #krate::__private as __optimus;
            type __Key = #key;
            #scan
            #tables
            #hooks
            fn __data() -> ::std::vec::Vec<__optimus::DataKey> {
                ::std::vec![#(__optimus::DataKey::of::<#data>()),*]
            }
            #values
            __optimus::Source::new(
                (#name, ::core::concat!(::core::file!(), ":", ::core::line!())),
                __OPTIONS,
                __optimus::SourceParts {
                    tables: __tables,
                    data: __data,
                    scan: __scan,
                    before: __BEFORE,
                    on_failure: __ON_FAILURE,
                    archive: __ARCHIVE,
                },
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
        #vis fn #ident() -> #krate::Source {
            ::core::unreachable!()
        }
    }
}

/// Returns the options as constants.
fn values(model: &Model) -> TokenStream {
    let options = &model.options;
    let tiers = options.tiers.iter().map(|tier| {
        let (least, most, every) = (tier.least, tier.most, time(tier.every));
        quote!(__optimus::Tier { least: #least, most: #most, every: #every })
    });
    let every = options.every.unwrap_or_default();
    // Many tables of which most are empty are looked at more rarely while they are.
    let usual = if options.over.is_some() { every.saturating_mul(2) } else { every };
    let idle = time(options.idle.unwrap_or(usual));
    let (slices, page) = (options.slices.unwrap_or(1), options.page.unwrap_or(PAGE));
    let high_water = options.high_water.unwrap_or(HIGH_WATER);
    let attempts = some(options.attempts);
    let remember = time(options.remember.unwrap_or(REMEMBER));
    let timeout = time(options.timeout.unwrap_or(TIMEOUT));
    let archive_after = some(options.archive.as_ref().map(|(after, _)| time(*after)));
    quote! {
        const __TIERS: &[__optimus::Tier] = &[#(#tiers),*];
        const __OPTIONS: __optimus::SourceOptions = __optimus::SourceOptions {
            tiers: __TIERS,
            idle: #idle,
            slices: #slices,
            page: #page,
            high_water: #high_water,
            attempts: #attempts,
            remember: #remember,
            timeout: #timeout,
            archive_after: #archive_after,
        };
    }
}

fn time(time: Duration) -> TokenStream {
    let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
    quote!(::core::time::Duration::new(#seconds, #nanos))
}

fn some(value: Option<impl ToTokens>) -> TokenStream {
    if let Some(value) = value {
        quote!(::core::option::Option::Some(#value))
    } else {
        quote!(::core::option::Option::None)
    }
}

/// Returns the function that names the tables.
fn tables(model: &Model) -> TokenStream {
    let names = if let Some(over) = &model.options.over {
        quote_spanned!(here(over.span())=> __optimus::table_names(#over))
    } else {
        quote!(::std::vec::Vec::new())
    };
    quote! {
        fn __tables() -> ::std::vec::Vec<::std::string::String> {
            #names
        }
    }
}

/// Returns the functions around tasks, and those that archive.
fn hooks(model: &Model) -> TokenStream {
    let options = &model.options;
    let archive = options.archive.as_ref().map(|(_, path)| path);
    let row = |path: &Path| quote_spanned!(here(path.span())=> __optimus::Row::<__Key>::of(__row)?);
    let before = options.before.as_ref().map(|path| {
        let row = row(path);
        hook(path, &quote!(RowFacts), &quote!(RunningCheck), &row, &quote!(standing_of))
    });
    let on_failure = options.on_failure.as_ref().map(|path| {
        let row = row(path);
        hook(path, &quote!(RowFacts), &quote!(RunningNote), &row, &quote!(noted))
    });
    let archive = archive.map(|path| {
        hook(path, &quote!(Archive), &quote!(RunningArchive), &quote!(__row), &quote!(archived))
    });
    let (before, on_failure, archive) = (some(before), some(on_failure), some(archive));
    let part = |given, returned| {
        quote! {
            ::core::option::Option<
                fn(__optimus::#given) -> ::core::result::Result<
                    __optimus::#returned, __optimus::BoxError,
                >,
            >
        }
    };
    let checks = part(quote!(RowFacts), quote!(RunningCheck));
    let notes = part(quote!(RowFacts), quote!(RunningNote));
    let archives = part(quote!(Archive), quote!(RunningArchive));
    quote! {
        const __BEFORE: #checks = #before;
        const __ON_FAILURE: #notes = #on_failure;
        const __ARCHIVE: #archives = #archive;
    }
}

/// Returns a function that calls one of the user's.
fn hook(
    path: &Path,
    given: &TokenStream,
    running: &TokenStream,
    argument: &TokenStream,
    checked: &TokenStream,
) -> TokenStream {
    let call = quote_spanned! {here(path.span())=>
        ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
            __optimus::#checked(#path(__argument).await)
        }))
    };
    quote! {{
        fn __hook(
            __row: __optimus::#given,
        ) -> ::core::result::Result<__optimus::#running, __optimus::BoxError> {
            let __argument = #argument;
            #call
        }
        __hook
    }}
}

/// Returns the original function, under another name.
fn body(model: &Model) -> TokenStream {
    let Model { cfg, attrs, vis, block, .. } = model;
    let mut sig = model.sig.clone();
    sig.ident = model.body_ident();
    let doc = format!("One page of [`{}`], without a worker.", model.sig.ident);
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

/// Returns the function that reads a page.
fn scan(model: &Model) -> TokenStream {
    let body = model.body_ident();
    let locals: Vec<_> = (0..model.params.len()).map(|n| format_ident!("__p{n}")).collect();
    let values = model.params.iter().zip(&locals).map(|(Param { ty, is_page }, local)| {
        let place = here(ty.span());
        if *is_page {
            quote_spanned!(place=> let #local = <#ty as __optimus::IsPage>::of(&__facts)?;)
        } else {
            quote_spanned!(place=> let #local = __optimus::page_data::<#ty>(&__facts)?;)
        }
    });
    let output = match &model.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let found = quote_spanned!(here(output.span())=> __optimus::found_of::<__Key, #output>);
    let started = quote_spanned! {here(model.sig.ident.span())=>
        ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
            #found(#body(#(#locals),*).await, &__facts)
        }))
    };
    quote! {
        fn __scan(
            __facts: ::std::sync::Arc<__optimus::PageFacts>,
        ) -> ::core::result::Result<__optimus::RunningScan, __optimus::BoxError> {
            #(#values)*
            #started
        }
    }
}
