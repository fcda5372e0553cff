//! The options as code: a chain of setters, and the function that fills the template.

use std::time::Duration;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{LitStr, ext::IdentExt, spanned::Spanned};

use crate::{
    expand::here,
    parse::{
        backoff::Formula,
        function::{Model, Param},
        gather::Window,
        options::{Awaited, Backoff, LaneFailure, OnLost, PrerequisiteFailure},
        rate::Rate,
        template::{self, Template},
    },
};

/// Generates the options that differ from the defaults.
pub(crate) fn options(model: &Model) -> TokenStream {
    let o = &model.options;
    let mut tokens = quote!(__optimus::TaskOptions::new());
    let mut set = |name: &str, value: Option<TokenStream>| {
        let name = Ident::new(name, Span::call_site());
        tokens.extend(value.map(|value| quote!(.#name(#value))));
    };
    set("queue", o.queue.as_ref().map(ToTokens::to_token_stream));
    set("priority", o.priority.map(ToTokens::into_token_stream));
    set("timeout", o.timeout.map(duration));
    set("max_retry", o.max_retry.map(ToTokens::into_token_stream));
    set("backoff", o.backoff.as_ref().map(backoff));
    set("biz_window", o.biz_window.map(duration));
    set("result_ttl", o.result_ttl.map(duration));
    set("expires_in", o.expires_in.map(duration));
    set("on_lost", o.on_lost.map(on_lost));
    set("max_losses", o.max_losses.map(ToTokens::into_token_stream));
    set("lane_width", o.lane_width.map(ToTokens::into_token_stream));
    set("on_lane_failure", o.on_lane_failure.map(on_lane_failure));
    set("on_prerequisite_failure", o.on_prerequisite_failure.map(on_prerequisite_failure));
    set("give_up_after", o.give_up_after.map(duration));
    set("outcome_ttl", o.outcome_ttl.map(duration));
    let limits = &o.limits;
    set("limit", limits.limit.as_ref().map(ToTokens::to_token_stream));
    set("rate", limits.rate.map(rate));
    set("burst", limits.burst.map(ToTokens::into_token_stream));
    set("max_working", limits.max_working.map(ToTokens::into_token_stream));
    set("cost", limits.cost.map(ToTokens::into_token_stream));
    set("lane_rate", limits.lane_rate.map(rate));
    set("lane_burst", limits.lane_burst.map(ToTokens::into_token_stream));
    set("gather", o.gather.window.map(window));
    set("history", o.history.map(duration));
    tokens
}

fn window(Window { wait, most }: Window) -> TokenStream {
    let wait = duration(wait);
    quote!(#wait, #most)
}

fn rate(Rate { tasks, function }: Rate) -> TokenStream {
    let function = Ident::new(function, Span::call_site());
    quote!(__optimus::Rate::#function(#tasks))
}

/// Generates a duration.
pub(crate) fn duration(duration: Duration) -> TokenStream {
    let millis = u64::try_from(duration.as_millis()).expect("durations are below 1,800 days");
    quote!(::core::time::Duration::from_millis(#millis))
}

fn on_lost(on_lost: OnLost) -> TokenStream {
    match on_lost {
        OnLost::Dead => quote!(__optimus::OnLost::Dead),
        OnLost::Retry => quote!(__optimus::OnLost::Retry),
    }
}

fn on_lane_failure(on_failure: LaneFailure) -> TokenStream {
    match on_failure {
        LaneFailure::Skip => quote!(__optimus::LaneFailure::Skip),
        LaneFailure::Block => quote!(__optimus::LaneFailure::Block),
    }
}

fn on_prerequisite_failure(on_failure: PrerequisiteFailure) -> TokenStream {
    let word = match on_failure {
        PrerequisiteFailure::Wait => quote!(Wait),
        PrerequisiteFailure::Cancel => quote!(Cancel),
        PrerequisiteFailure::Run => quote!(Run),
    };
    quote!(__optimus::PrerequisiteFailure::#word)
}

/// Generates the function that names the prerequisites.
pub(crate) fn after(model: &Model) -> TokenStream {
    let keys = model.options.after.iter().map(|awaited| match awaited {
        Awaited::Function(path) => {
            quote_spanned!(here(path.span())=> __optimus::remembered(#path, __biz_id))
        }
        Awaited::Named(queue, task) => quote!(__optimus::Key::new(#queue, #task, __biz_id)),
    });
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() {
        return TokenStream::new();
    }
    quote! {
        fn after_biz_id(__biz_id: &::core::primitive::str) -> ::std::vec::Vec<__optimus::Key> {
            ::std::vec![#(#keys),*]
        }
    }
}

fn backoff(backoff: &Backoff) -> TokenStream {
    let backoff = match backoff {
        Backoff::Custom(path) => {
            return quote_spanned!(here(path.span())=> __optimus::Backoff::Custom(#path));
        }
        Backoff::Formula(Formula::Sidekiq) => quote!(Sidekiq),
        Backoff::Formula(Formula::Exponential { base, cap, jitter }) => {
            let (base, cap) = (duration(*base), duration(*cap));
            quote!(Exponential { base: #base, cap: #cap, jitter: #jitter })
        }
        Backoff::Formula(Formula::Linear { base, cap, jitter }) => {
            let (base, cap) = (duration(*base), duration(*cap));
            quote!(Linear { base: #base, cap: #cap, jitter: #jitter })
        }
        Backoff::Formula(Formula::Fixed { wait, jitter }) => {
            let wait = duration(*wait);
            quote!(Fixed { wait: #wait, jitter: #jitter })
        }
    };
    quote!(__optimus::Backoff::#backoff)
}

/// The options that are made of the arguments, with the templates that the definition has.
fn given(model: &Model) -> impl Iterator<Item = (&'static str, &(LitStr, Template))> {
    let o = &model.options;
    let given = [("biz_id", &o.biz_id), ("lane", &o.lane), ("by", &o.gather.by)];
    given.into_iter().filter_map(|(name, given)| Some((name, given.as_ref()?)))
}

/// Generates the functions that fill the templates, and the parts of the templates, for a step that
/// takes an argument from another task.
pub(crate) fn templates(model: &Model) -> TokenStream {
    let filled: TokenStream =
        given(model).map(|(name, given)| filled(model, name, given)).collect();
    let parts: Vec<_> = given(model)
        .map(|(name, (_, Template { literals, .. }))| {
            quote!(__optimus::KeyTemplate { option: #name, literals: &[#(#literals),*] })
        })
        .collect();
    if parts.is_empty() {
        return TokenStream::new();
    }
    quote! {
        const TEMPLATES: &'static [__optimus::KeyTemplate] = &[#(#parts),*];
        #filled
    }
}

/// Generates a function of that name, which fills the template from the arguments.
fn filled(model: &Model, name: &str, (literal, template): &(LitStr, Template)) -> TokenStream {
    let span = here(literal.span());
    let name = Ident::new(name, span);
    let format = LitStr::new(&template.format(), span);
    let values = template.placeholders.iter().map(|placeholder| {
        let param = param_ident(model, &placeholder.param, span);
        let fields = placeholder.fields.iter().map(|field| member(field, span));
        quote_spanned!(span=> self.#param #(.#fields)*)
    });
    quote_spanned! {span=>
        fn #name(&self) -> ::core::option::Option<::std::string::String> {
            ::core::option::Option::Some(::std::format!(#format, #(#values),*))
        }
    }
}

/// Generates what a given argument means for the templates that have it, and the marks by which
/// `chain!` finds out whether they have one that is not given.
pub(crate) fn known(model: &Model, param: &Param) -> (TokenStream, Vec<&'static str>) {
    let (mut texts, mut marks) = (Vec::new(), Vec::new());
    for (name, (literal, template)) in given(model) {
        // The spans are those of `filled`, so that a mistake is reported once.
        let span = here(literal.span());
        for (place, placeholder) in template.placeholders.iter().enumerate() {
            if param.ident.unraw() != placeholder.param {
                continue;
            }
            let format = LitStr::new(&placeholder.format(), span);
            let fields = placeholder.fields.iter().map(|field| member(field, span));
            texts.push(quote_spanned! {span=>
                __texts.put(#name, #place, ::std::format!(#format, (*__value)#(.#fields)*));
            });
            marks.push(name);
        }
    }
    marks.dedup();
    if texts.is_empty() {
        return (TokenStream::new(), marks);
    }
    let fill = quote! {
        const IS_IN_TEMPLATE: ::core::primitive::bool = true;

        fn fill(__value: &Self::Type, __texts: &mut __optimus::KeyTexts) {
            #(#texts)*
        }
    };
    (fill, marks)
}

fn param_ident(model: &Model, plain: &str, span: Span) -> Ident {
    let mut arguments = model.arguments().map(|param| &param.ident);
    let found = arguments.find(|ident| ident.unraw() == plain);
    let mut ident = found.expect("a checked placeholder").clone();
    ident.set_span(ident.span().located_at(span));
    ident
}

/// Returns a field. Its span is not that of the user's code: the compiler would propose to replace
/// the whole template by a field with a similar name.
fn member(field: &str, span: Span) -> TokenStream {
    if let Some(mut name) = template::name(field) {
        name.set_span(span);
        return name.into_token_stream();
    }
    let mut position = Literal::u32_unsuffixed(field.parse().expect("a checked position"));
    position.set_span(span);
    position.into_token_stream()
}
