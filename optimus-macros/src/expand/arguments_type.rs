//! The hidden type of the arguments: its definition, and its conversion to and from JSON.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{ext::IdentExt, spanned::Spanned};

use crate::{
    expand::{here, options},
    parse::function::{Model, Param},
};

/// Generates the arguments inside a call. The type is at least as visible as the function whose
/// return type contains it.
pub(crate) fn args_struct(model: &Model) -> TokenStream {
    let (vis, cfg, args) = (&model.vis, &model.attrs.cfg, model.args_ident());
    let fields = model.arguments().map(|Param { ident, ty, .. }| quote!(#ident: #ty));
    quote! {
        #(#cfg)*
        #[doc(hidden)]
        #[allow(
            non_camel_case_types, non_snake_case, unreachable_pub,
            reason = "users name only the function"
        )]
        #vis struct #args { #(#fields),* }
    }
}

/// Derives `Serialize` and `Deserialize` on a mirror that has the serde attributes.
///
/// The derived code has the bound that each argument is an `Argument`. If an argument is not one,
/// `__Mirror::serialize` resolves to the fallback of `NoJson`. Then the assertion at the argument's
/// type is the only error.
pub(crate) fn codec(model: &Model) -> TokenStream {
    let args = model.args_ident();
    let own: Vec<_> = model.arguments().filter(|param| !param.has_own_codec()).collect();
    let aliases: Vec<_> = (0..own.len()).map(|n| format_ident!("__Argument{n}")).collect();
    let types = own.iter().map(|param| &param.ty);
    let checks = own.iter().map(|Param { ty, .. }| {
        quote_spanned!(here(ty.span())=> const _: () = __optimus::argument::<#ty>();)
    });
    // In a where-clause, `for<'a>` keeps rustc from checking a bound without parameters early.
    let bound: Vec<_> =
        aliases.iter().map(|alias| format!("for<'a> {alias}: __optimus::Argument")).collect();
    let bound = bound.join(", ");
    let fields =
        model.arguments().map(|Param { ident, ty, serde, .. }| quote!(#(#serde)* #ident: #ty));
    let remote = args.to_string();
    quote! {
        #(type #aliases = #types;)*
        #(#checks)*

        #[derive(__optimus::serde::Serialize, __optimus::serde::Deserialize)]
        #[serde(crate = "__optimus::serde", remote = #remote, bound = #bound)]
        struct __Mirror { #(#fields),* }

        impl __optimus::serde::Serialize for #args {
            fn serialize<S: __optimus::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                use __optimus::NoJson as _;
                __Mirror::serialize(self, serializer)
            }
        }

        impl<'de> __optimus::serde::Deserialize<'de> for #args {
            fn deserialize<D: __optimus::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                use __optimus::NoJson as _;
                __Mirror::deserialize(deserializer)
            }
        }
    }
}

/// Lets each argument be the result of another task, unless a serde attribute changes how it is
/// encoded.
pub(crate) fn parameters(model: &Model) -> TokenStream {
    let args = model.args_ident();
    let named = model.arguments().enumerate();
    let impls = named.filter_map(|(index, param)| {
        let (name, ty) = (param.plain_json_name()?, &param.ty);
        let (fill, options) = options::known(model, param);
        let marks = options.into_iter().map(|option| match option {
            "biz_id" => quote!(MakesBizId),
            "lane" => quote!(MakesLane),
            _ => quote!(MakesBy),
        });
        Some(quote! {
            impl __optimus::Parameter<#index> for #args {
                const NAME: &'static ::core::primitive::str = #name;
                type Type = #ty;
                #fill
            }
            #(impl __optimus::#marks<#index> for #args {})*
        })
    });
    impls.collect()
}

/// Implements `Clone` and `Debug` for a call, if its arguments have them.
pub(crate) fn value_impls(model: &Model) -> TokenStream {
    let (args, name) = (model.args_ident(), model.plain_name());
    let idents: Vec<_> = model.arguments().map(|param| &param.ident).collect();
    let names = idents.iter().map(|ident| ident.unraw().to_string());
    let types: Vec<_> = model.arguments().map(|param| &param.ty).collect();
    quote! {
        impl ::core::clone::Clone for #args
        where #(for<'a> #types: ::core::clone::Clone,)*
        {
            fn clone(&self) -> Self {
                Self { #(#idents: ::core::clone::Clone::clone(&self.#idents)),* }
            }
        }

        impl ::core::fmt::Debug for #args
        where #(for<'a> #types: ::core::fmt::Debug,)*
        {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#name)#(.field(#names, &self.#idents))*.finish()
            }
        }
    }
}
