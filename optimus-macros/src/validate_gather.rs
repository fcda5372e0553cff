//! The parameter of a task that gathers its calls: the caller passes one value, and the function
//! takes the list of them.

use syn::{GenericArgument, PathArguments, PathSegment, Type, ext::IdentExt};

use crate::{
    errors::Errors,
    parse::{
        function::{Model, Param, Role},
        template::Template,
    },
};

/// Gives each argument the type that a call passes, and reports a function that can't take a list
/// of calls.
pub(crate) fn check(model: &mut Model, errors: &mut Errors) {
    if !model.options.gather.is_given {
        if let Some(each) = each_of(&model.output) {
            errors.refuse(
                each,
                "`Each` has a result for each call of a run, and this task gathers no calls: add \
                 `gather = \"10s | 500\"`, or return the result itself",
            );
        }
        return;
    }
    let name = &model.sig.ident;
    let mut arguments = model.params.iter_mut().filter(|param| param.role == Role::Argument);
    let Some(first) = arguments.next() else {
        errors.refuse(
            name,
            "a task that gathers its calls takes the list of them: add a parameter such as \
             `calls: Vec<Event>`",
        );
        return;
    };
    let is_list = take(first);
    let mut others = arguments.peekable();
    if let Some(second) = others.peek() {
        errors.refuse(
            &second.pat,
            "a task that gathers its calls has one list of arguments: put the values of one call \
             into a struct or a tuple, as in `calls: Vec<(User, Event)>`; what the worker provides \
             is `#[data]`",
        );
    } else if !is_list && !borrows(&first.ty) {
        let ty = &first.ty;
        let written = quote::quote!(#ty).to_string();
        errors.refuse(
            ty,
            format!(
                "a run has many calls, so the function takes the list of their arguments: \
                 `Vec<{written}>`; each call passes one `{written}`"
            ),
        );
    }
    for other in others {
        take(other);
    }
}

/// Returns whether another error says that the parameter must own its value.
fn borrows(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) => true,
        Type::Group(group) => borrows(&group.elem),
        Type::Paren(paren) => borrows(&paren.elem),
        _ => false,
    }
}

/// Returns the `Each<T>` of a result, also in `Result<Each<T>, E>`.
fn each_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathSegment { ident, arguments } = path.path.segments.last()?;
    let PathArguments::AngleBracketed(generics) = arguments else { return None };
    if ident == "Each" {
        return Some(ty);
    }
    let first = generics.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    first.filter(|_| ident == "Result").and_then(each_of)
}

/// Replaces the type `Vec<T>` of a parameter with that of one call. Returns whether it was one.
fn take(param: &mut Param) -> bool {
    let Some(one) = element(&param.ty) else { return false };
    param.list = Some(std::mem::replace(&mut param.ty, one));
    true
}

fn element(ty: &Type) -> Option<Type> {
    match ty {
        Type::Group(group) => element(&group.elem),
        Type::Paren(paren) => element(&paren.elem),
        Type::Path(path) if path.qself.is_none() => {
            let PathSegment { ident, arguments } = path.path.segments.last()?;
            let PathArguments::AngleBracketed(generics) = arguments else { return None };
            let mut types = generics.args.iter().map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty.clone()),
                _ => None,
            });
            let (one, None) = (types.next()??, types.next()) else { return None };
            (ident == "Vec").then_some(one)
        }
        _ => None,
    }
}

/// Lets a placeholder that names no parameter mean a field of the call.
pub(crate) fn name_fields(params: &[Param], template: &mut Template) {
    let plain = |param: &Param| param.ident.unraw().to_string();
    let Some(list) = params.iter().find(|param| param.list.is_some()).map(plain) else { return };
    for placeholder in &mut template.placeholders {
        if params.iter().all(|param| plain(param) != placeholder.param) {
            let field = std::mem::replace(&mut placeholder.param, list.clone());
            placeholder.fields.insert(0, field);
        }
    }
}

impl Param {
    /// Returns the type of the function's own parameter.
    pub(crate) fn body_type(&self) -> &Type {
        self.list.as_ref().unwrap_or(&self.ty)
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn the_type_of_a_call_is_the_element_of_a_list() {
        let one: Type = parse_quote!((u64, String));
        for ty in [parse_quote!(Vec<(u64, String)>), parse_quote!((::std::vec::Vec<(u64, String)>))]
        {
            assert_eq!(element(&ty), Some(one.clone()));
        }
        for ty in [parse_quote!(Event), parse_quote!(Vec), parse_quote!(HashMap<u8, u8>)] {
            assert_eq!(element(&ty), None);
        }
        assert_eq!(element(&parse_quote!(Vec<u8, A>)), None);
    }
}
