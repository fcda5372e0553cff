//! Collects errors, so that one compilation shows all of them.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Adds an error at `tokens`.
    pub(crate) fn refuse(&mut self, tokens: impl ToTokens, remedy: impl std::fmt::Display) {
        self.0.push(syn::Error::new_spanned(tokens, remedy));
    }

    /// Adds an error at the attribute itself.
    pub(crate) fn refuse_all(&mut self, remedy: impl std::fmt::Display) {
        self.0.push(syn::Error::new(Span::call_site(), remedy));
    }

    /// Adds the error, or returns the value.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    /// Returns whether no error was added since `earlier`, an earlier [`count`](Self::count).
    pub(crate) fn none_since(&self, earlier: usize) -> bool {
        self.0.len() == earlier
    }

    /// Returns the number of errors.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Generates one `compile_error!` for each error.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.into_iter().map(syn::Error::into_compile_error).collect()
    }
}
