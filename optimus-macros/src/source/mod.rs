//! `#[source]`: parses the options and the function, reports what can't be a source, and writes the
//! code.

mod demote;
mod expand;
mod options;
mod words;

use proc_macro2::TokenStream;
use quote::quote;

use self::{options::Options, words::WORDS};
use crate::{errors::Errors, post_function::PostFunction};

/// Returns what replaces the function.
pub(crate) fn expand(attr: TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let mut errors = Errors::default();
    let Ok(function) = syn::parse(item.clone()) else {
        errors.refuse_all("`#[optimus::source]` goes on an `async fn`");
        let refused = proc_macro::TokenStream::from(errors.into_tokens());
        return item.into_iter().chain(refused).collect();
    };
    let options = Options::parse(attr, &mut errors);
    let function = PostFunction::new(function, options.name.clone(), &WORDS, &mut errors);
    let mut code = if errors.none_since(0) {
        expand::code(&options, &function)
    } else {
        function.stub(&options.krate, &quote!(Source))
    };
    code.extend(errors.into_tokens());
    code.into()
}
