//! Who may look, who may act, and from where.

mod auth;
mod base64;
mod custom;
mod identity;
mod origin;
mod patterns;
mod reader;
mod secrets;
mod sessions;
mod trusted_header;

pub use self::{
    auth::Auth,
    custom::CustomAuth,
    identity::{Identity, Payloads, Role},
    secrets::Secrets,
    trusted_header::TrustedHeader,
};
pub(crate) use self::{
    auth::{Authenticated, BASIC_AUTH, authenticate, brings_token},
    origin::{Peer, check_host, check_same_site},
    patterns::Patterns,
    reader::Reader,
    sessions::Sessions,
};
