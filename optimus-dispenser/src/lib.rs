//! The HTTP face of the dispensers of Optimus: an [axum] router.
//!
//! A [`Dispenser`](optimus_core::Dispenser) hands out items to people and programs. This crate lets
//! them call its verbs by HTTP. A *token* decides who the caller is, so no assignee can act as
//! another one.
//!
//! ```no_run
//! use optimus_core::Client;
//! use optimus_dispenser::{Settings, Tokens, router};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("redis://127.0.0.1/").await?;
//! let tokens = Tokens::new();
//! tokens.add_assignee("ann", &std::env::var("TOKEN_OF_ANN")?)?;
//! tokens.add_operator("desk", &std::env::var("TOKEN_OF_DESK")?)?;
//! let app = router(Settings::new(tokens).serve(client.dispenser("review")));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, app).await?;
//! # Ok(())
//! # }
//! ```
//!
#![doc = include_str!("requests.md")]

mod answers;
mod node;
mod page;
mod problem;
mod requests;
mod settings;
mod tokens;
mod verbs;

pub use self::{
    settings::{Settings, router},
    tokens::{Caller, TokenError, Tokens},
};
