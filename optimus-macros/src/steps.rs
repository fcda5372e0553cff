//! The macros `chain!` and `step!`: calls in which the result of another task is the argument `_`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Expr, ExprCall, Token, TypePath,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    spanned::Spanned,
};

use crate::expand::here;

/// The path of the facade, and then the steps. The facade's `macro_rules!` passes its own path.
struct Steps {
    krate: TypePath,
    steps: Punctuated<Expr, Token![,]>,
}

impl Parse for Steps {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let krate = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Self { krate, steps: Punctuated::parse_terminated(input)? })
    }
}

/// Writes a chain as calls of `then`.
pub(crate) fn chain(input: TokenStream) -> TokenStream {
    let written = read(input).and_then(|Steps { krate, steps }| {
        let mut steps = steps.into_iter();
        let Some(first) = steps.next() else {
            let text = "`chain![]` has no steps; write the first one as a call, as in \
                        `chain![reserve(order), pay]`";
            return Err(syn::Error::new(Span::call_site(), text));
        };
        let place = here(first.span());
        let first = step(first, &krate)?;
        let mut chain = quote_spanned!(place=> #krate::IntoFlow::into_flow(#first));
        for next in steps {
            let place = here(next.span());
            let next = step(next, &krate)?;
            chain = quote_spanned!(place=> #krate::Flow::then(#chain, #next));
        }
        Ok(chain)
    });
    written.unwrap_or_else(|problem| problem.to_compile_error())
}

/// Writes one step.
pub(crate) fn one_step(input: TokenStream) -> TokenStream {
    let written = read(input).and_then(|Steps { krate, steps }| {
        let mut steps = steps.into_iter();
        match (steps.next(), steps.next()) {
            (Some(only), None) => Ok(quote::ToTokens::into_token_stream(step(only, &krate)?)),
            _ => Err(syn::Error::new(
                Span::call_site(),
                "`step![…]` has one step, as in `step![pay(account, _)]`; several make a \
                 `chain![…]`",
            )),
        }
    });
    written.unwrap_or_else(|problem| problem.to_compile_error())
}

fn read(input: TokenStream) -> syn::Result<Steps> {
    Steps::parse.parse2(input)
}

/// Replaces the call that has `_` as an argument, which may be the receiver of options.
fn step(mut step: Expr, krate: &TypePath) -> syn::Result<Expr> {
    let call = innermost(&mut step);
    if let Expr::Call(ExprCall { func, args, .. }) = call
        && args.iter().any(is_hole)
    {
        *call = syn::parse2(with_hole(func, args, krate)?)?;
    }
    Ok(step)
}

/// Returns the expression at which a chain of methods begins.
fn innermost(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::MethodCall(method) => innermost(&mut method.receiver),
        Expr::Paren(paren) => innermost(&mut paren.expr),
        Expr::Group(group) => innermost(&mut group.expr),
        other => other,
    }
}

fn is_hole(expr: &Expr) -> bool {
    matches!(expr, Expr::Infer(_))
}

fn with_hole(
    func: &Expr,
    args: &Punctuated<Expr, Token![,]>,
    krate: &TypePath,
) -> syn::Result<TokenStream> {
    let mut holes = args.iter().enumerate().filter(|(_, arg)| is_hole(arg));
    let Some((hole, place)) = holes.next() else { return Ok(TokenStream::new()) };
    if let Some((_, second)) = holes.next() {
        let text = "a step takes one result, so only one argument can be `_`; after a group, the \
                    argument is a `Vec` of the results";
        return Err(syn::Error::new(second.span(), text));
    }
    let unknown =
        args.iter().map(|arg| quote_spanned!(here(arg.span())=> #krate::__private::unknown()));
    let span = here(func.span());
    let mut call = quote_spanned!(span=> #krate::__private::given(|| (#func)(#(#unknown),*)));
    for (index, arg) in args.iter().enumerate().filter(|(_, arg)| !is_hole(arg)) {
        call = quote_spanned!(here(arg.span())=> #call.give::<#index>(#arg));
    }
    let take = quote_spanned!(here(place.span())=> take::<#hole>());
    Ok(quote!(#call.#take))
}
