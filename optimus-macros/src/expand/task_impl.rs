//! `impl Task`: the name, the options, and the call of the function in one attempt.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::{
    expand::{here, options},
    parse::function::{Model, Param, Role},
};

pub(crate) fn task_impl(model: &Model) -> TokenStream {
    let args = model.args_ident();
    let name = model.task_name().value();
    let (options, run) = (options::options(model), run(model));
    let (templates, after) = (options::templates(model), options::after(model));
    let schedule = schedule(model);
    let data = model.params.iter().filter(|param| param.role == Role::Data).map(|param| &param.ty);
    let (verdict, ty) = (outcome(model), &model.output);
    let gathers = model.options.gather.is_given;
    let answers = if gathers { quote!(AnswersRun) } else { quote!(Answers) };
    let output = if model.options.keeps_result() {
        quote_spanned! {here(ty.span())=>
            type Output = <__Answer as __optimus::#answers<#ty>>::Output;
        }
    } else {
        quote!(
            type Output = ();
        )
    };
    let remembered = model.options.outcome_ttl.map(|_| {
        quote!(
            impl __optimus::Remembered for #args {}
        )
    });
    quote! {
        #verdict
        #remembered

        impl __optimus::Task for #args {
            const NAME: &'static str = #name;
            #output

            fn options() -> __optimus::TaskOptions {
                #options
            }
            #templates
            #after
            #schedule
            fn required_data() -> ::std::vec::Vec<__optimus::DataKey> {
                ::std::vec![#(__optimus::DataKey::of::<#data>()),*]
            }
            #run
        }
    }
}

/// Generates the function that names the schedule.
fn schedule(model: &Model) -> TokenStream {
    let Some(cron) = &model.cron else { return TokenStream::new() };
    let expression = &cron.expression;
    let zone = cron.zone.iter().map(|zone| quote!(.tz(#zone)));
    let missed = cron.missed.iter().map(|missed| quote!(.missed(__optimus::Missed::#missed)));
    let overlap = cron.overlap.iter().map(|overlap| quote!(.overlap(__optimus::Overlap::#overlap)));
    let jitter = cron.jitter.as_ref().map(|jitter| options::duration(jitter.time));
    let jitter = jitter.iter().map(|jitter| quote!(.jitter(#jitter)));
    quote! {
        fn schedule() -> ::core::option::Option<__optimus::Schedule> {
            let __schedule = __optimus::Schedule::cron(Self::NAME, #expression);
            let __schedule = __schedule #(#zone)* #(#missed)* #(#overlap)* #(#jitter)*;
            let __schedule = __schedule.release(::core::env!("CARGO_PKG_VERSION"));
            ::core::option::Option::Some(__schedule.call(__optimus::Call::new(Self {})))
        }
    }
}

/// Generates the checks of the function's result. If the result is not valid, the assertion is the
/// only error.
fn outcome(model: &Model) -> TokenStream {
    let ty = &model.output;
    let place = here(ty.span());
    let gathers = model.options.gather.is_given;
    let (returns, keeps) = (kind(model, "RETURNS"), kind(model, "KEEPS"));
    let mut tokens = quote_spanned! {place=>
        const _: () = __optimus::returns::<#ty>();
        const __RETURNS: u8 = #returns;
    };
    if model.options.keeps_result() {
        let kept = if gathers { "keeps_of_run" } else { "keeps" };
        let kept = format_ident!("{kept}", span = place);
        tokens.extend(quote_spanned! {place=>
            const _: () = __optimus::Answer::<__RETURNS>::#kept::<#ty>();
            const __KIND: u8 = #keeps;
            type __Answer = __optimus::Answer<__KIND>;
        });
        return tokens;
    }
    tokens.extend(quote!(
        type __Answer = __optimus::Answer<__RETURNS>;
    ));
    if !gathers {
        tokens.extend(quote_spanned! {place=>
            const _: () = {
                use __optimus::NotReturnable as _;
                __optimus::of_one_call(__optimus::ReturnKind::<#ty>::RETURNS_EACH);
            };
        });
    }
    tokens
}

/// Generates the constant of this name of the function's result. A run may have a result for each
/// call.
fn kind(model: &Model, name: &str) -> TokenStream {
    let (ty, one) = (&model.output, format_ident!("{name}"));
    let place = here(ty.span());
    let of = quote_spanned!(place=> __optimus::ReturnKind::<#ty>);
    if !model.options.gather.is_given {
        return quote_spanned! {place=> {
            use __optimus::NotReturnable as _;
            #of::#one
        }};
    }
    let each = format_ident!("{name}_EACH");
    quote_spanned! {place=> {
        use __optimus::NotReturnable as _;
        if #of::RETURNS_EACH == 0 { #of::#one } else { #of::#each }
    }}
}

/// Generates one attempt: the parameters in their order, each from its source.
fn run(model: &Model) -> TokenStream {
    let body = model.body_ident();
    let locals: Vec<_> = (0..model.params.len()).map(|n| format_ident!("__p{n}")).collect();
    let gathers = model.options.gather.is_given;
    let values = model.params.iter().map(|Param { ident, ty, role, .. }| match role {
        Role::Argument if gathers => quote! {
            __calls.into_iter().map(|__call| __call.#ident).collect::<::std::vec::Vec<#ty>>()
        },
        Role::Argument => quote!(self.#ident),
        Role::Data => quote_spanned!(here(ty.span())=> __optimus::data::<#ty>(&__ctx)?),
        Role::Context => {
            quote_spanned!(here(ty.span())=> <#ty as __optimus::IsContext>::of(__ctx.clone()))
        }
        Role::Tick => quote_spanned!(here(ty.span())=> <#ty as __optimus::IsTick>::of(&__ctx)),
    });
    let ty = &model.output;
    let answer = if gathers {
        quote!(<__Answer as __optimus::AnswersRun<#ty>>::of_run)
    } else {
        quote!(<__Answer as __optimus::Answers<#ty>>::of)
    };
    let answered = if model.sig.asyncness.is_some() {
        quote!(#answer(#body(#(#locals),*).await))
    } else {
        quote!(__ctx.run_blocking(move || #answer(#body(#(#locals),*))).await)
    };
    // Compiler errors about the attempt's future appear at the function's name.
    let place = here(model.sig.ident.span());
    if gathers {
        return quote_spanned! {place=>
            async fn run(
                self,
                __ctx: __optimus::Context,
            ) -> ::core::result::Result<Self::Output, __optimus::BoxError> {
                Self::run_all(::std::vec![self], __ctx).await?.into_single()
            }

            async fn run_all(
                __calls: ::std::vec::Vec<Self>,
                __ctx: __optimus::Context,
            ) -> ::core::result::Result<__optimus::Each<Self::Output>, __optimus::BoxError> {
                #(let #locals = #values;)*
                #answered
            }
        };
    }
    quote_spanned! {place=>
        async fn run(
            self,
            __ctx: __optimus::Context,
        ) -> ::core::result::Result<Self::Output, __optimus::BoxError> {
            #(let #locals = #values;)*
            #answered
        }
    }
}
