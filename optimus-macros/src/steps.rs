//! The macros `chain!` and `step!`: calls in which the result of another task is the argument `_`.

use std::mem;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::{
    Expr, ExprAssign, ExprCall, ExprInfer, Token, TypePath,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    spanned::Spanned,
    visit::Visit,
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

/// Where a step is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    /// In `chain!`: no option can be set on it later.
    Chain,
    /// In `step!`.
    Alone,
}

/// The options that a definition can make of the arguments.
const TEMPLATE_OPTIONS: [&str; 3] = ["biz_id", "lane", "by"];

/// The methods of a call that set only the option that they are named after.
const OPTIONS: [&str; 26] = [
    "after",
    "backoff",
    "biz_id",
    "biz_window",
    "by",
    "cost",
    "due",
    "expires_in",
    "give_up_after",
    "header",
    "id",
    "lane",
    "lane_rate",
    "lane_width",
    "limit",
    "max_losses",
    "max_retry",
    "on_lane_failure",
    "on_lost",
    "on_prerequisite_failure",
    "outcome_ttl",
    "priority",
    "queue",
    "result_ttl",
    "timeout",
    "clone",
];

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
        let first = step(first, &krate, Site::Chain)?;
        let mut chain = quote_spanned!(place=> #krate::__private::first(#first));
        for next in steps {
            let place = here(next.span());
            let next = step(next, &krate, Site::Chain)?;
            // Without tokens of other places the compiler shows the step, not the whole chain.
            chain = quote_spanned! {place=> {
                use #krate::__private as __optimus;
                __optimus::follow(#chain, __optimus::NextStep(#next))
            }};
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
            (Some(only), None) => {
                Ok(quote::ToTokens::into_token_stream(step(only, &krate, Site::Alone)?))
            }
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
fn step(mut step: Expr, krate: &TypePath, site: Site) -> syn::Result<Expr> {
    if let Expr::Closure(_) = &step {
        let text = "a closure can't be a step, because a flow never calls it: write the call, with \
                    `_` for the result of the step before it, as in `pay(account, _)`";
        return Err(syn::Error::new_spanned(&step, text));
    }
    let needed = match site {
        Site::Chain => needed(&step),
        Site::Alone => Vec::new(),
    };
    let call = innermost(&mut step);
    let with_hole = match call {
        Expr::Call(ExprCall { func, args, .. }) if args.iter().any(is_hole) => {
            let written = with_hole(func, args, krate, &needed)?;
            Some(mem::replace(call, syn::parse2(written)?))
        }
        _ => None,
    };
    misplaced_hole(&step)?;
    if let Some(Expr::Call(ExprCall { args, .. })) = &with_hole {
        args.iter().filter(|arg| !is_hole(arg)).try_for_each(misplaced_hole)?;
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

/// Returns the options that the definition must make of the arguments, because the step does not
/// set them; none if the step calls a method that this macro does not know, which may set them.
fn needed(step: &Expr) -> Vec<&'static str> {
    let mut needed = TEMPLATE_OPTIONS.to_vec();
    let mut step = step;
    loop {
        step = match step {
            Expr::MethodCall(method) if OPTIONS.iter().any(|name| method.method == name) => {
                needed.retain(|name| method.method != name);
                &method.receiver
            }
            Expr::MethodCall(_) => return Vec::new(),
            Expr::Paren(paren) => &paren.expr,
            Expr::Group(group) => &group.expr,
            _ => return needed,
        };
    }
}

fn is_hole(expr: &Expr) -> bool {
    matches!(expr, Expr::Infer(_))
}

/// Refuses a `_` that no step takes. The compiler would call it a pattern.
fn misplaced_hole(step: &Expr) -> syn::Result<()> {
    let mut search = Holes { found: None };
    search.visit_expr(step);
    search.found.map_or(Ok(()), |place| {
        let text = "`_` stands for the result of the step before it, and must be a whole argument \
                    of the call that is the step, as in `pay(account, _)`; for a member of a \
                    group, write `step!(pay(account, _))`";
        Err(syn::Error::new(place, text))
    })
}

/// Finds the first `_` that is an expression. The steps of other macros are tokens here.
struct Holes {
    found: Option<Span>,
}

impl<'ast> Visit<'ast> for Holes {
    fn visit_expr_infer(&mut self, hole: &'ast ExprInfer) {
        self.found.get_or_insert(hole.span());
    }

    fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
        // On the left, `_` drops a value.
        self.visit_expr(&assign.right);
    }
}

/// Writes the arguments that are given, and the place of the one that is missing. The options that
/// are `needed` must be made of those that are given.
fn with_hole(
    func: &Expr,
    args: &Punctuated<Expr, Token![,]>,
    krate: &TypePath,
    needed: &[&str],
) -> syn::Result<TokenStream> {
    let mut holes = args.iter().enumerate().filter(|(_, arg)| is_hole(arg));
    let Some((hole, place)) = holes.next() else { return Ok(TokenStream::new()) };
    if let Some((_, second)) = holes.next() {
        let text = "a step takes one result, so only one argument can be `_`; after a group, the \
                    argument is a `Vec` of the results";
        return Err(syn::Error::new(second.span(), text));
    }
    let any = args.iter().map(|arg| quote_spanned!(here(arg.span())=> __any.argument()));
    let span = here(func.span());
    let mut call = quote_spanned!(span=> __optimus::none_given(|__any| (#func)(#(#any),*)));
    for (index, arg) in args.iter().enumerate().filter(|(_, arg)| !is_hole(arg)) {
        call = quote_spanned!(here(arg.span())=> __optimus::give::<_, #index>(#call, #arg));
    }
    let at_hole = here(place.span());
    let checks = needed.iter().map(|option| {
        let option = Ident::new(option, at_hole);
        quote_spanned!(at_hole=> __hole.#option();)
    });
    let checks = if needed.is_empty() {
        TokenStream::new()
    } else {
        quote_spanned! {at_hole=>
            use __optimus::NotNeeded as _;
            let __hole = __optimus::hole::<_, #hole>(&__given);
            #(#checks)*
        }
    };
    let taken = quote_spanned!(at_hole=> __optimus::take::<_, #hole>(__given));
    Ok(quote_spanned! {span=> {
        use #krate::__private as __optimus;
        let __given = #call;
        #checks
        #taken
    }})
}
