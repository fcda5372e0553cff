//! A parsed source, and every reason why a function can't be one.

use quote::format_ident;
use syn::{
    Attribute, Block, FnArg, Ident, ItemFn, LitStr, Pat, ReturnType, Signature, Type, Visibility,
    ext::IdentExt,
};

use crate::{errors::Errors, source::options::Options};

/// The function under `#[optimus::source]`.
pub(crate) struct Model {
    pub(crate) options: Options,
    pub(crate) cfg: Vec<Attribute>,
    pub(crate) docs: Vec<Attribute>,
    /// The other attributes, which stay on the function that does the work.
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) params: Vec<Param>,
    pub(crate) block: Box<Block>,
}

/// One parameter.
pub(crate) struct Param {
    pub(crate) ty: Type,
    pub(crate) is_page: bool,
}

impl Model {
    /// Takes the function apart, and reports what can't be a source.
    pub(crate) fn new(options: Options, item: ItemFn, errors: &mut Errors) -> Self {
        let (cfg, rest): (Vec<_>, Vec<_>) =
            item.attrs.into_iter().partition(|attr| attr.path().is_ident("cfg"));
        let (docs, attrs): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|attr| attr.path().is_ident("doc"));
        let mut model = Self {
            options,
            cfg,
            docs,
            attrs,
            vis: item.vis,
            sig: item.sig,
            params: Vec::new(),
            block: item.block,
        };
        model.qualifiers(errors);
        for input in &mut model.sig.inputs {
            model.params.extend(parameter(input, errors));
        }
        let pages = model.params.iter().filter(|param| param.is_page).count();
        if pages != 1 && errors.none_since(0) {
            errors.refuse(
                &model.sig.ident,
                "a source takes one `page: optimus::Page<i64>`, which says which rows to read; \
                 `i64` is the type of the table's key",
            );
        }
        model
    }

    /// Returns the name under which workers and operators know the source.
    pub(crate) fn name(&self) -> LitStr {
        let ident = &self.sig.ident;
        let name = self.options.name.clone();
        name.unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), ident.span()))
    }

    /// Returns the function that does the work.
    pub(crate) fn body_ident(&self) -> Ident {
        format_ident!("{}_body", self.sig.ident.unraw(), span = self.sig.ident.span())
    }

    fn qualifiers(&self, errors: &mut Errors) {
        let sig = &self.sig;
        if sig.ident == "main" {
            errors.refuse(
                &sig.ident,
                "`main` starts the program, so it can't be a source: move the query to a function \
                 with another name",
            );
        }
        if sig.asyncness.is_none() {
            errors.refuse(
                sig.fn_token,
                "a source is an `async fn`, so that a page can be dropped when the worker loses \
                 its slice; run code that blocks with `tokio::task::spawn_blocking`",
            );
        }
        if !sig.generics.params.is_empty() {
            errors.refuse(
                &sig.generics,
                "a worker calls the function by its name, so it can't be generic",
            );
        }
        if matches!(sig.output, ReturnType::Default) {
            errors.refuse(
                &sig.ident,
                "a source returns `Result<Vec<Found<K>>, E>`: the rows of the page, with their \
                 tasks",
            );
        }
    }
}

/// Reads one parameter, and removes `#[data]` from it.
fn parameter(input: &mut FnArg, errors: &mut Errors) -> Option<Param> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            errors.refuse(
                receiver,
                "a source is a free function: move it out of the `impl`, and take what it needs of \
                 `self` as `#[data]`",
            );
            return None;
        }
    };
    let (data, rest) = typed.attrs.drain(..).partition(|attr| attr.path().is_ident("data"));
    typed.attrs = rest;
    let data: Vec<Attribute> = data;
    let is_page = is_page(&typed.ty);
    if matches!(*typed.ty, Type::Reference(_)) {
        errors.refuse(&typed.ty, "the function owns its parameters: remove the `&`");
        return None;
    }
    if !is_page && data.is_empty() {
        errors.refuse(
            &typed.pat,
            "nobody calls a source with arguments: put `#[data]` on a value of the worker",
        );
        return None;
    }
    if matches!(*typed.pat, Pat::Wild(_) | Pat::Ident(_)) {
        return Some(Param { ty: (*typed.ty).clone(), is_page });
    }
    errors.refuse(&typed.pat, "a parameter is a plain name; take it apart in the body");
    None
}

/// Returns whether the type is written `…::Page<…>`.
fn is_page(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Page"),
        Type::Reference(reference) => is_page(&reference.elem),
        Type::Group(group) => is_page(&group.elem),
        Type::Paren(paren) => is_page(&paren.elem),
        _ => false,
    }
}
