//! Every refusal of a function that cannot be a task, with the place and the remedy.

use quote::{ToTokens, quote};
use syn::{
    GenericArgument, GenericParam, Lifetime, LitStr, Pat, PatIdent, PathArguments, Safety, Type,
    TypeFnPtr, TypeImplTrait, TypePath, TypeReference,
    ext::IdentExt,
    visit::{self, Visit},
};

use crate::{
    errors::Errors,
    parse::{
        function::{Model, Param, Role},
        option_value,
        template::{Placeholder, Template},
    },
    suggest, validate_cron, validate_gather,
};

/// Reports why the function cannot be a task. Returns whether its signature is valid.
pub(crate) fn check(model: &mut Model, errors: &mut Errors) -> bool {
    let before = errors.count();
    qualifiers(model, errors);
    generics(model, errors);
    validate_gather::check(model, errors);
    model.params.iter().for_each(|param| parameter(param, errors));
    one_context(model, errors);
    validate_cron::check(model, errors);
    result(model, errors);
    let sound = errors.none_since(before);
    name(model, errors);
    let by = model.options.gather.by.as_mut();
    for (_, template) in model.options.biz_id.iter_mut().chain(by) {
        validate_gather::name_fields(&model.params, template);
    }
    if !placeholders(model, "by", model.options.gather.by.as_ref(), errors) {
        model.options.gather.by = None;
    }
    if !placeholders(model, "biz_id", model.options.biz_id.as_ref(), errors) {
        model.options.biz_id = None;
    }
    if !placeholders(model, "lane", model.options.lane.as_ref(), errors) {
        model.options.lane = None;
    }
    sound
}

fn qualifiers(model: &Model, errors: &mut Errors) {
    let sig = &model.sig;
    if model.is_main() {
        errors.refuse(
            &sig.ident,
            "`main` starts the program, so it can't be a task: move the task to a function with \
             another name",
        );
    }
    if let Some(receiver) = &model.receiver {
        errors.refuse(
            receiver,
            "a task is a free function: move it out of the `impl`, and take what it needs of \
             `self` as arguments or as `#[data]`",
        );
    }
    if let Some(constness) = &sig.constness {
        errors.refuse(constness, "a task runs on a worker, never in a constant: remove `const`");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.refuse(
            token,
            "a worker cannot guarantee what an `unsafe` function requires: remove `unsafe`, and \
             put the unsafe part into a block inside",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.refuse(abi, "only Rust calls a task: remove `extern`");
    }
    if let Some(variadic) = &sig.variadic {
        errors.refuse(variadic, "a task has a fixed list of parameters: take a `Vec`");
    }
}

fn generics(model: &Model, errors: &mut Errors) {
    let generics = &model.sig.generics;
    for param in &generics.params {
        match param {
            GenericParam::Lifetime(lifetime) => errors.refuse(
                lifetime,
                "a task's arguments come from Redis, so there is nothing to borrow from: take \
                 owned types and remove the lifetime",
            ),
            GenericParam::Type(_) | GenericParam::Const(_) => errors.refuse(
                param,
                "a task can't be generic: a worker finds the function by its name alone. \
                 Write a generic function, and one task for each type that calls it",
            ),
        }
    }
    if let (true, Some(clause)) = (generics.params.is_empty(), &generics.where_clause) {
        errors.refuse(clause, "a task can't be generic: remove the `where`");
    }
}

fn parameter(param: &Param, errors: &mut Errors) {
    match &param.pat {
        Pat::Ident(PatIdent { by_ref: None, subpat: None, .. }) => {}
        pat => errors.refuse(
            pat,
            "a task's parameter needs a plain name, which is its key in the stored JSON: take the \
             whole value, and destructure it inside",
        ),
    }
    for attr in param
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr"))
    {
        errors.refuse(attr, "a task's parameters can't be conditional: put the `cfg` on the task");
    }
    if let (Role::Data | Role::Context | Role::Tick, Some(attr)) = (param.role, param.serde.first())
    {
        let name = &param.ident;
        errors.refuse(attr, format!("`{name}` comes from the worker and is never serialized"));
    }
    let found = Hindrance::of(&param.ty);
    if let Some(opaque) = found.opaque {
        errors.refuse(opaque, "a task can't be generic: name the parameter's type");
    } else if let Some(borrow) = found.borrow
        && !(param.role == Role::Data && found.all_static)
    {
        let remedy = remedy(param, &borrow);
        errors.refuse(&borrow, remedy);
    } else if let (Role::Argument, Some((shared, value))) = (param.role, found.shared) {
        let (name, value) = (&param.ident, value.to_token_stream());
        let text = format!(
            "an argument is stored in Redis, and a worker moves it between threads, so `{name}` \
             can't be an `Rc`: take `{value}`"
        );
        errors.refuse(shared, text);
    }
}

fn remedy(param: &Param, borrow: &Borrow) -> String {
    let name = &param.ident;
    let owned = borrow.owned();
    match param.role {
        Role::Argument => format!(
            "an argument is stored in Redis until a worker takes it, so `{name}` can't borrow: \
             take {owned}"
        ),
        Role::Data => format!("each attempt gets its own clone of `{name}`: take {owned}"),
        Role::Context => format!("take {owned}: the context is cheap to clone"),
        Role::Tick => format!("take {owned}: each attempt gets its own"),
    }
}

fn one_context(model: &Model, errors: &mut Errors) {
    let contexts = model.params.iter().filter(|param| param.role == Role::Context);
    for second in contexts.skip(1) {
        let Param { pat, ty, .. } = second;
        errors.refuse(quote!(#pat: #ty), "a task has only one `Context`: remove this parameter");
    }
}

fn result(model: &Model, errors: &mut Errors) {
    let found = Hindrance::of(&model.output);
    if let Some(opaque) = found.opaque {
        errors.refuse(opaque, "the result of a task is read by another program: name its type");
    } else if let (Some(borrow), false) = (found.borrow, found.all_static) {
        let owned = borrow.owned();
        errors.refuse(&borrow, format!("the result of a task can't borrow: return {owned}"));
    } else if model.options.keeps_result()
        && let Some(borrow) = Hindrance::of(value_of(&model.output)).borrow
    {
        let owned = borrow.owned();
        errors.refuse(
            &borrow,
            format!(
                "the result of a task is stored and read back by another program, so it can't be \
                 a `&'static` reference: return {owned}; if nobody reads it, set `result_ttl = 0`"
            ),
        );
    }
}

/// Returns the value of a success: in `Result<T, E>`, also through an alias, the `T`.
fn value_of(output: &Type) -> &Type {
    let Type::Path(path) = output else { return output };
    let Some(last) = path.path.segments.last() else { return output };
    let PathArguments::AngleBracketed(generics) = &last.arguments else { return output };
    let first = generics.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    first.unwrap_or(output)
}

/// Returns whether the result borrows. A function without borrowed parameters cannot do that.
pub(crate) fn result_borrows(model: &Model) -> bool {
    !Hindrance::of(&model.output).all_static
}

fn name(model: &Model, errors: &mut Errors) {
    if model.options.name.is_none()
        && let Some(problem) = option_value::name_problem(&model.plain_name())
    {
        errors.refuse(&model.sig.ident, format!("{problem}; set one with `name = \"…\"`"));
    }
}

/// Whether each placeholder of the option's template is an argument.
fn placeholders(
    model: &Model,
    option: &str,
    given: Option<&(LitStr, Template)>,
    errors: &mut Errors,
) -> bool {
    let before = errors.count();
    let Some((literal, template)) = given else { return true };
    let plain = |param: &Param| param.ident.unraw().to_string();
    let arguments: Vec<String> = model.arguments().map(plain).collect();
    let there_are = match arguments.len() {
        0 => "this task has no arguments".to_owned(),
        _ => format!("use {}", suggest::list(&arguments)),
    };
    let whole = literal.value();
    if arguments.contains(&whole) {
        let text = format!(
            "`{option}`: this is the text {whole:?} for all calls, and not the value of the \
             parameter: write \"{{{whole}}}\""
        );
        errors.refuse(literal, text);
    }
    for Placeholder { param: wanted, .. } in &template.placeholders {
        match model.params.iter().find(|param| plain(param) == *wanted).map(|param| param.role) {
            Some(Role::Argument) => {}
            Some(Role::Data | Role::Context | Role::Tick) => errors.refuse(
                literal,
                format!(
                    "`{option}`: `{wanted}` comes from the worker, but `{option}` is filled when \
                     the task is submitted; {there_are}"
                ),
            ),
            None => errors.refuse(
                literal,
                format!("`{option}`: there is no parameter `{wanted}`; {there_are}"),
            ),
        }
    }
    errors.none_since(before)
}

/// The parts of a type that prevent its storage or transfer.
struct Hindrance {
    opaque: Option<TypeImplTrait>,
    borrow: Option<Borrow>,
    all_static: bool,
    /// An `Rc`, and what is in it. The compiler would report it three times, in generated code.
    shared: Option<(TypePath, GenericArgument)>,
}

impl Hindrance {
    fn of(ty: &Type) -> Self {
        let mut found = Self { opaque: None, borrow: None, all_static: true, shared: None };
        found.visit_type(ty);
        found
    }
}

enum Borrow {
    Reference(TypeReference),
    Lifetime(Lifetime),
}

impl Visit<'_> for Hindrance {
    fn visit_type_impl_trait(&mut self, opaque: &TypeImplTrait) {
        self.opaque.get_or_insert_with(|| opaque.clone());
    }

    fn visit_type_reference(&mut self, reference: &TypeReference) {
        self.all_static &= reference.lifetime.as_ref().is_some_and(|name| name.ident == "static");
        self.borrow.get_or_insert_with(|| Borrow::Reference(reference.clone()));
        visit::visit_type(self, &reference.elem);
    }

    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if lifetime.ident != "static" {
            self.all_static = false;
            self.borrow.get_or_insert_with(|| Borrow::Lifetime(lifetime.clone()));
        }
    }

    fn visit_type_path(&mut self, path: &TypePath) {
        if let Some(last) = path.path.segments.last()
            && last.ident == "Rc"
            && let PathArguments::AngleBracketed(generics) = &last.arguments
            && let Some(value) = generics.args.first()
        {
            self.shared.get_or_insert_with(|| (path.clone(), value.clone()));
        }
        visit::visit_type_path(self, path);
    }

    /// `fn(&str)` and `Fn(&str)` borrow only during their calls.
    fn visit_type_fn_ptr(&mut self, _: &TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &syn::ParenthesizedGenericArguments) {}
}

impl Borrow {
    /// Returns the type to use instead.
    fn owned(&self) -> String {
        let Self::Reference(reference) = self else { return "an owned type".to_owned() };
        match &*reference.elem {
            Type::Slice(slice) => format!("`Vec<{}>`", slice.elem.to_token_stream()),
            Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
            Type::Path(path) if path.path.is_ident("Path") => "`PathBuf`".to_owned(),
            Type::TraitObject(_) => "a concrete type".to_owned(),
            ty => format!("`{}`", ty.to_token_stream()),
        }
    }
}

impl ToTokens for Borrow {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        match self {
            Self::Reference(reference) => reference.to_tokens(tokens),
            Self::Lifetime(lifetime) => lifetime.to_tokens(tokens),
        }
    }
}
