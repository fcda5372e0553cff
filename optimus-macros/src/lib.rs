//! The attribute [`macro@task`], which makes a function a task of the Optimus queue,
//! [`macro@cron`], which also gives it a schedule, and what the macros `chain!` and `step!` of the
//! facade write.
//!
//! From the attribute to the code: `parse` reads the attribute's options and takes the function
//! apart, `validate` reports what cannot be a task, and `expand` writes the code, or a replacement
//! after an error.

mod errors;
mod expand;
mod parse;
mod post_function;
mod sharded;
mod source;
mod steps;
mod suggest;
mod validate_cron;
mod validate_function;
mod validate_gather;

use proc_macro::TokenStream;

#[doc = include_str!("task.md")]
#[proc_macro_attribute]
pub fn task(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = errors::Errors::default();
    let Ok(function) = syn::parse(item.clone()) else {
        errors.refuse_all(
            "`#[optimus::task]` goes on a function; to make a type a task, write \
             `impl optimus::Task` for it",
        );
        return item.into_iter().chain(TokenStream::from(errors.into_tokens())).collect();
    };
    let options = parse::options::Options::parse(attr.into(), &mut errors);
    define(options, None, function, errors)
}

#[doc = include_str!("cron.md")]
#[proc_macro_attribute]
pub fn cron(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = errors::Errors::default();
    let Ok(function) = syn::parse(item.clone()) else {
        errors.refuse_all(
            "`#[optimus::cron]` goes on a function; to give a type a schedule, write \
             `impl optimus::Task` for it, with `schedule`",
        );
        return item.into_iter().chain(TokenStream::from(errors.into_tokens())).collect();
    };
    let (cron, options) = parse::cron::parse(attr.into(), &mut errors);
    let options = parse::options::Options::parse(options, &mut errors);
    define(options, cron, function, errors)
}

fn define(
    options: parse::options::Options,
    cron: Option<parse::cron::Cron>,
    function: syn::ItemFn,
    mut errors: errors::Errors,
) -> TokenStream {
    let mut model = parse::function::Model::new(options, cron, function, &mut errors);
    let sound = validate_function::check(&mut model, &mut errors);
    let mut code = if sound { expand::expand(&model) } else { expand::fallback::stub(&model) };
    code.extend(errors.into_tokens());
    code.into()
}

#[doc = include_str!("sharded.md")]
#[proc_macro_attribute]
pub fn sharded(attr: TokenStream, item: TokenStream) -> TokenStream {
    sharded::expand(attr.into(), item)
}

#[doc = include_str!("source.md")]
#[proc_macro_attribute]
pub fn source(attr: TokenStream, item: TokenStream) -> TokenStream {
    source::expand(attr.into(), item)
}

/// Writes a chain, for `chain!` of the facade.
#[doc(hidden)]
#[proc_macro]
pub fn write_chain(input: TokenStream) -> TokenStream {
    steps::chain(input.into()).into()
}

/// Writes a step, for `step!` of the facade.
#[doc(hidden)]
#[proc_macro]
pub fn write_step(input: TokenStream) -> TokenStream {
    steps::one_step(input.into()).into()
}
