//! The code of a source: its definition, under its own name, and the function that reads a page.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Path, spanned::Spanned};

use crate::{
    expand::here,
    post_function::{Param, PostFunction},
    source::options::Options,
};

const PAGE: u32 = 1_000;
const HIGH_WATER: u64 = 10_000;
const REMEMBER: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns everything that replaces the function.
pub(crate) fn code(options: &Options, function: &PostFunction) -> TokenStream {
    let (name, scan, values) = (&function.name, scan(function), values(options));
    let page = function.params.iter().find(|param| param.is_rows).map(|param| &param.ty);
    let key = page.map(|ty| quote_spanned!(here(ty.span())=> <#ty as __optimus::IsPage>::Key));
    let (tables, hooks) = (tables(options), hooks(options));
    let content = quote! {
        type __Key = #key;
        #scan
        #tables
        #hooks
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
    };
    function.code((&options.krate, &quote!(Source)), &content, "One page")
}

/// Returns the options as constants.
fn values(options: &Options) -> TokenStream {
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
fn tables(options: &Options) -> TokenStream {
    let names = if let Some(over) = &options.over {
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
fn hooks(options: &Options) -> TokenStream {
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

/// Returns the function that reads a page.
fn scan(function: &PostFunction) -> TokenStream {
    let body = function.body_ident();
    let locals: Vec<_> = (0..function.params.len()).map(|n| format_ident!("__p{n}")).collect();
    let values = function.params.iter().zip(&locals).map(|(Param { ty, is_rows }, local)| {
        let place = here(ty.span());
        if *is_rows {
            quote_spanned!(place=> let #local = <#ty as __optimus::IsPage>::of(&__facts);)
        } else {
            quote_spanned!(place=> let #local = __optimus::page_data::<#ty>(&__facts)?;)
        }
    });
    let output = function.returned();
    let found = quote_spanned!(here(output.span())=> __optimus::found_of::<__Key, #output>);
    let started = quote_spanned! {here(function.sig.ident.span())=>
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
