//! The attribute [`macro@task`], which makes a function a task of the Optimus queue.
//!
//! From the attribute to the code: `attr` reads the options (`value`, `duration`, `backoff` and
//! `template` read their values), `model` takes the function apart, `validate` reports what cannot
//! be a task, `expand` writes the code (`arguments`, `definition`, `settings` and `unique` write
//! its parts), and `fallback` writes a replacement after an error.

mod arguments;
mod attr;
mod backoff;
mod definition;
mod duration;
mod errors;
mod expand;
mod fallback;
mod model;
mod settings;
mod suggest;
mod template;
mod unique;
mod validate;
mod value;

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
    let options = attr::Options::parse(attr.into(), &mut errors);
    let mut model = model::Model::new(options, function, &mut errors);
    let sound = validate::check(&mut model, &mut errors);
    let mut code = if sound { expand::expand(&model) } else { fallback::stub(&model) };
    code.extend(errors.into_tokens());
    code.into()
}
