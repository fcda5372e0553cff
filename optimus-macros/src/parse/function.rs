//! A parsed task function, for the other modules.

use proc_macro2::Span;
use quote::format_ident;
use syn::{
    Attribute, Block, Expr, FnArg, Ident, ItemFn, Lit, LitStr, Meta, MetaNameValue, Pat, Receiver,
    ReturnType, Signature, Token, Type, Visibility, ext::IdentExt, parse_quote_spanned,
    punctuated::Punctuated,
};

use crate::{
    errors::Errors,
    parse::{cron::Cron, options::Options},
};

/// The function under `#[optimus::task]`.
pub(crate) struct Model {
    pub(crate) options: Options,
    /// The schedule, under `#[optimus::cron]`.
    pub(crate) cron: Option<Cron>,
    pub(crate) attrs: Attrs,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) params: Vec<Param>,
    /// `()` if the function returns nothing.
    pub(crate) output: Type,
    pub(crate) block: Box<Block>,
}

/// One parameter.
pub(crate) struct Param {
    pub(crate) pat: Pat,
    pub(crate) ident: Ident,
    /// The type of the argument that a call passes.
    pub(crate) ty: Type,
    /// The type of the list of these, if the task gathers its calls.
    pub(crate) list: Option<Type>,
    pub(crate) role: Role,
    /// Attributes that stay on the function's parameter.
    pub(crate) attrs: Vec<Attribute>,
    /// Attributes that move to the field.
    pub(crate) serde: Vec<Attribute>,
}

/// The source of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The value comes from the call, through Redis.
    Argument,
    /// The value comes from the worker: `#[data]`.
    Data,
    /// The value comes from the attempt.
    Context,
    /// The value is the instant of the schedule.
    Tick,
}

/// The function's attributes, by their target.
#[derive(Default)]
pub(crate) struct Attrs {
    /// Attributes of all generated items.
    pub(crate) cfg: Vec<Attribute>,
    /// Attributes of the function that makes calls.
    pub(crate) call: Vec<Attribute>,
    /// Attributes of the function that does the work.
    pub(crate) body: Vec<Attribute>,
}

impl Model {
    /// Takes the function apart. `validate` reports what cannot be a task.
    pub(crate) fn new(
        options: Options,
        cron: Option<Cron>,
        item: ItemFn,
        errors: &mut Errors,
    ) -> Self {
        let mut model = Self {
            options,
            cron,
            attrs: Attrs::default(),
            vis: item.vis,
            output: match &item.sig.output {
                ReturnType::Default => parse_quote_spanned!(item.sig.ident.span()=> ()),
                ReturnType::Type(_, ty) => (**ty).clone(),
            },
            receiver: None,
            params: Vec::new(),
            block: item.block,
            sig: item.sig,
        };
        item.attrs.into_iter().for_each(|attr| model.attrs.place(attr));
        for (position, input) in model.sig.inputs.clone().into_iter().enumerate() {
            match input {
                FnArg::Receiver(receiver) => model.receiver = Some(receiver),
                FnArg::Typed(typed) => {
                    let param = Param::new(position, *typed.pat, *typed.ty, typed.attrs, errors);
                    model.params.push(param);
                    if let (Some(_), Some(param)) = (&model.cron, model.params.last_mut()) {
                        param.take_tick();
                    }
                }
            }
        }
        model
    }

    /// Returns the function's name without `r#`.
    pub(crate) fn plain_name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    /// Returns the name under which the task is stored, and its span.
    pub(crate) fn task_name(&self) -> LitStr {
        let name = self.options.name.clone();
        name.unwrap_or_else(|| LitStr::new(&self.plain_name(), self.sig.ident.span()))
    }

    /// Returns whether the function is the program's `main` function.
    pub(crate) fn is_main(&self) -> bool {
        self.plain_name() == "main"
    }

    /// Returns the function that does the work.
    pub(crate) fn body_ident(&self) -> Ident {
        format_ident!("{}_body", self.sig.ident.unraw(), span = self.sig.ident.span())
    }

    /// Returns the hidden type of the arguments. It is not in camel case, so two functions cannot
    /// share one.
    pub(crate) fn args_ident(&self) -> Ident {
        format_ident!("__OptimusTask_{}", self.sig.ident.unraw(), span = Span::call_site())
    }

    /// Returns whether the biz id or the lane is made of the parameter.
    pub(crate) fn is_in_template(&self, param: &Param) -> bool {
        let templates = [&self.options.biz_id, &self.options.lane].into_iter().flatten();
        let mut placeholders = templates.flat_map(|(_, template)| &template.placeholders);
        placeholders.any(|placeholder| param.ident.unraw() == *placeholder.param)
    }

    /// Returns the parameters that a caller passes.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| param.role == Role::Argument)
    }
}

impl Param {
    fn new(
        position: usize,
        pat: Pat,
        ty: Type,
        attrs: Vec<Attribute>,
        errors: &mut Errors,
    ) -> Self {
        let (data, attrs): (Vec<_>, Vec<_>) =
            attrs.into_iter().partition(|attr| attr.path().is_ident("data"));
        let (serde, attrs): (Vec<_>, Vec<_>) =
            attrs.into_iter().partition(|attr| attr.path().is_ident("serde"));
        for attr in data.iter().filter(|attr| !matches!(attr.meta, Meta::Path(_))) {
            errors.refuse(attr, "`#[data]` has no arguments: the value is found by its type");
        }
        let role = match () {
            () if !data.is_empty() => Role::Data,
            () if is_named(&ty, "Context") => Role::Context,
            () => Role::Argument,
        };
        let ident = match &pat {
            Pat::Ident(pat) => pat.ident.clone(),
            _ => format_ident!("argument_{position}"),
        };
        Self { pat, ident, ty, list: None, role, attrs, serde }
    }

    /// Takes the instant of the schedule for an argument of a type that is written `…::Tick`.
    fn take_tick(&mut self) {
        if self.role == Role::Argument && is_named(&self.ty, "Tick") {
            self.role = Role::Tick;
        }
    }

    /// Returns the name of the argument in JSON, unless a serde attribute changes how the argument
    /// is encoded.
    pub(crate) fn plain_json_name(&self) -> Option<String> {
        let mut name = self.ident.unraw().to_string();
        for attr in &self.serde {
            let metas = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            for meta in metas.ok()? {
                match &meta {
                    Meta::NameValue(MetaNameValue { value: Expr::Lit(literal), .. })
                        if meta.path().is_ident("rename") =>
                    {
                        let Lit::Str(text) = &literal.lit else { return None };
                        name = text.value();
                    }
                    meta if ["default", "alias"].iter().any(|it| meta.path().is_ident(it)) => {}
                    _ => return None,
                }
            }
        }
        Some(name)
    }

    /// Returns whether serde attributes replace the type's own (de)serialization.
    pub(crate) fn has_own_codec(&self) -> bool {
        self.serde.iter().any(|attr| {
            let metas = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            metas.into_iter().flatten().any(|meta| {
                ["with", "serialize_with", "deserialize_with", "skip"]
                    .iter()
                    .any(|name| meta.path().is_ident(name))
            })
        })
    }
}

/// Returns whether the type is written `…::<name>`, such as `Context`. A reference to one counts
/// too, so that the error can refer to it.
fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        Type::Reference(reference) => is_named(&reference.elem, name),
        Type::Group(group) => is_named(&group.elem, name),
        Type::Paren(paren) => is_named(&paren.elem, name),
        _ => false,
    }
}

impl Attrs {
    /// Documentation belongs to the calling function, lints to all items, and anything else (such
    /// as `#[instrument]`) to the body.
    fn place(&mut self, attr: Attribute) {
        match &*self::subject(&attr.meta) {
            "cfg" => self.cfg.push(attr),
            "doc" | "deprecated" => self.call.push(attr),
            "allow" | "warn" | "deny" | "forbid" => {
                self.call.push(attr.clone());
                self.body.push(attr);
            }
            _ => self.body.push(attr),
        }
    }
}

/// Returns the attribute's name; for `cfg_attr`, the name of the attribute that it adds.
fn subject(meta: &Meta) -> String {
    if let Meta::List(list) = meta
        && list.path.is_ident("cfg_attr")
        && let Ok(inner) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        && let Some(added) = inner.iter().nth(1)
    {
        return subject(added);
    }
    meta.path().get_ident().map(Ident::to_string).unwrap_or_default()
}
