//! A function that workers call for a post, which is a shard or a slice of a source, and every
//! reason why a function can't be one: [`PostFunction`].

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, Block, FnArg, Ident, ItemFn, LitStr, Pat, Path, ReturnType, Signature, Type,
    Visibility, ext::IdentExt,
};

use crate::errors::Errors;

/// The function under the attribute.
pub(crate) struct PostFunction {
    /// The name under which workers and operators know it.
    pub(crate) name: LitStr,
    cfg: Vec<Attribute>,
    docs: Vec<Attribute>,
    /// The other attributes, which stay on the function that does the work.
    attrs: Vec<Attribute>,
    vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) params: Vec<Param>,
    block: Box<Block>,
}

/// One parameter.
pub(crate) struct Param {
    pub(crate) ty: Type,
    /// Whether it says on which rows the function works.
    pub(crate) is_rows: bool,
}

/// What is different from attribute to attribute.
pub(crate) struct Words {
    /// The type of the parameter that says on which rows the function works.
    pub(crate) rows: &'static str,
    pub(crate) one_parameter_has_the_rows: &'static str,
    pub(crate) it_is_not_main: &'static str,
    pub(crate) it_is_async: &'static str,
    pub(crate) it_returns_a_result: &'static str,
    pub(crate) it_is_free: &'static str,
    pub(crate) nobody_passes_arguments: &'static str,
}

impl PostFunction {
    /// Takes the function apart, and reports why it can't be one.
    pub(crate) fn new(
        item: ItemFn,
        name: Option<LitStr>,
        words: &Words,
        errors: &mut Errors,
    ) -> Self {
        let (cfg, rest): (Vec<_>, Vec<_>) =
            item.attrs.into_iter().partition(|attr| attr.path().is_ident("cfg"));
        let (docs, attrs): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|attr| attr.path().is_ident("doc"));
        let mut sig = item.sig;
        qualifiers(&sig, words, errors);
        let params: Vec<Param> =
            sig.inputs.iter_mut().filter_map(|input| parameter(input, words, errors)).collect();
        if params.iter().filter(|param| param.is_rows).count() != 1 && errors.none_since(0) {
            errors.refuse(&sig.ident, words.one_parameter_has_the_rows);
        }
        let name =
            name.unwrap_or_else(|| LitStr::new(&sig.ident.unraw().to_string(), sig.ident.span()));
        Self { name, cfg, docs, attrs, vis: item.vis, sig, params, block: item.block }
    }

    /// Returns the type that it returns.
    pub(crate) fn returned(&self) -> TokenStream {
        match &self.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => ty.to_token_stream(),
        }
    }

    /// Returns the name of the function that does the work.
    pub(crate) fn body_ident(&self) -> Ident {
        format_ident!("{}_body", self.sig.ident.unraw(), span = self.sig.ident.span())
    }

    /// Returns everything that replaces the function: its definition of this type, under its own
    /// name and with this content, and the function that does one part of the work.
    pub(crate) fn code(
        &self,
        (krate, definition): (&Path, &TokenStream),
        content: &TokenStream,
        one_part: &str,
    ) -> TokenStream {
        let Self { cfg, docs, vis, .. } = self;
        let (ident, body) = (&self.sig.ident, self.body(one_part));
        let data = self.params.iter().filter(|param| !param.is_rows).map(|param| &param.ty);
        quote! {
            #(#cfg)*
            #(#docs)*
            #[must_use]
            #[allow(dead_code, reason = "a worker serves what its own program never names")]
            #vis const fn #ident() -> #krate::#definition {
                use #krate::__private as __optimus;
                fn __data() -> ::std::vec::Vec<__optimus::DataKey> {
                    ::std::vec![#(__optimus::DataKey::of::<#data>()),*]
                }
                #content
            }
            #body
            #(#cfg)*
            const _: () = {
                #krate::__private::inventory::submit! { #ident() }
            };
        }
    }

    /// Returns the original function, under another name.
    fn body(&self, one_part: &str) -> TokenStream {
        let Self { cfg, attrs, vis, block, .. } = self;
        let mut sig = self.sig.clone();
        sig.ident = self.body_ident();
        let doc = format!("{one_part} of [`{}`], without a worker.", self.sig.ident);
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

    /// Returns a definition that compiles where the function was refused, so that one mistake
    /// causes one error.
    pub(crate) fn stub(&self, krate: &Path, definition: &TokenStream) -> TokenStream {
        let (Self { cfg, vis, .. }, ident) = (self, &self.sig.ident);
        if ident == "main" {
            return quote!(
                fn main() {}
            );
        }
        quote! {
            #(#cfg)*
            #[doc(hidden)]
            #[allow(
                dead_code, clippy::all, clippy::pedantic,
                reason = "its definition was refused"
            )]
            #vis fn #ident() -> #krate::#definition {
                ::core::unreachable!()
            }
        }
    }
}

fn qualifiers(sig: &Signature, words: &Words, errors: &mut Errors) {
    if sig.ident == "main" {
        errors.refuse(&sig.ident, words.it_is_not_main);
    }
    if sig.asyncness.is_none() {
        errors.refuse(sig.fn_token, words.it_is_async);
    }
    if !sig.generics.params.is_empty() {
        let message = "a worker calls the function by its name, so it can't be generic";
        errors.refuse(&sig.generics, message);
    }
    if matches!(sig.output, ReturnType::Default) {
        errors.refuse(&sig.ident, words.it_returns_a_result);
    }
}

/// Reads one parameter, and removes `#[data]` from it.
fn parameter(input: &mut FnArg, words: &Words, errors: &mut Errors) -> Option<Param> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            errors.refuse(receiver, words.it_is_free);
            return None;
        }
    };
    let (data, rest): (Vec<_>, Vec<_>) =
        typed.attrs.drain(..).partition(|attr| attr.path().is_ident("data"));
    typed.attrs = rest;
    let is_rows = is_rows(&typed.ty, words.rows);
    if matches!(*typed.ty, Type::Reference(_)) {
        errors.refuse(&typed.ty, "the function owns its parameters: remove the `&`");
        return None;
    }
    if !is_rows && data.is_empty() {
        errors.refuse(&typed.pat, words.nobody_passes_arguments);
        return None;
    }
    if matches!(*typed.pat, Pat::Wild(_) | Pat::Ident(_)) {
        return Some(Param { ty: (*typed.ty).clone(), is_rows });
    }
    errors.refuse(&typed.pat, "a parameter is a plain name; take it apart in the body");
    None
}

/// Returns whether the type is written `…::<name>`, with or without arguments.
fn is_rows(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        Type::Reference(reference) => is_rows(&reference.elem, name),
        Type::Group(group) => is_rows(&group.elem, name),
        Type::Paren(paren) => is_rows(&paren.elem, name),
        _ => false,
    }
}
