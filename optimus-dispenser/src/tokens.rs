//! Who may call: [`Tokens`].

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use optimus_core::ASSIGNEE_BYTES_MAX;
use subtle::ConstantTimeEq;

/// A shorter token can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 512;

/// At most so many tokens are compared with that of a request.
const TOKENS_MAX: usize = 10_000;

/// Who a token belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caller {
    /// An assignee with its name.
    Assignee(String),
    /// Someone who adds items, rebuilds the pool, and sees all of it.
    Operator(String),
}

/// Why a token was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is too short or too long, or has characters that no header can have.
    #[error(
        "the token of {name:?} can't be used: it needs {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} \
         visible ASCII characters; make one from 16 random bytes"
    )]
    Token {
        /// The name of its caller.
        name: String,
    },
    /// The name of the caller is empty or too long.
    #[error("a name has {bytes} bytes; use 1 to {ASSIGNEE_BYTES_MAX}")]
    Name {
        /// Its bytes.
        bytes: usize,
    },
    /// Another caller has the same token.
    #[error("the token of {name:?} belongs to another caller; make another one")]
    Taken {
        /// The name of the caller that was to be added.
        name: String,
    },
    /// There are too many tokens.
    #[error("there are {TOKENS_MAX} tokens, which is the limit; revoke those that are not in use")]
    TooMany,
}

/// The tokens of all callers. Clones share them, so tokens can be added and revoked while the
/// router runs.
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Vec<(String, Caller)>>>);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Makes a set without tokens, which lets nobody call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token of an assignee, which may have several.
    ///
    /// # Errors
    /// [`TokenError`]: the token or the name can't be used, or there are too many tokens.
    pub fn add_assignee(&self, name: &str, token: &str) -> Result<(), TokenError> {
        self.add(name, token, Caller::Assignee(name.to_owned()))
    }

    /// Adds a token of an operator.
    ///
    /// # Errors
    /// As for [`add_assignee`](Self::add_assignee).
    pub fn add_operator(&self, name: &str, token: &str) -> Result<(), TokenError> {
        self.add(name, token, Caller::Operator(name.to_owned()))
    }

    /// Removes a token. Returns whether it was there.
    pub fn revoke(&self, token: &str) -> bool {
        let mut tokens = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = tokens.len();
        tokens.retain(|(known, _)| !is_same(known, token));
        tokens.len() < before
    }

    fn add(&self, name: &str, token: &str, caller: Caller) -> Result<(), TokenError> {
        let is_usable = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_usable {
            return Err(TokenError::Token { name: name.to_owned() });
        }
        if !(1..=ASSIGNEE_BYTES_MAX).contains(&name.len()) {
            return Err(TokenError::Name { bytes: name.len() });
        }
        let mut tokens = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, owner)) = tokens.iter().find(|(known, _)| is_same(known, token)) {
            let is_known = *owner == caller;
            return is_known.then_some(()).ok_or(TokenError::Taken { name: name.to_owned() });
        }
        if tokens.len() >= TOKENS_MAX {
            return Err(TokenError::TooMany);
        }
        tokens.push((token.to_owned(), caller));
        Ok(())
    }

    /// Returns whose token this is. The time does not depend on how much of a token is right, nor
    /// on which one it is.
    pub(crate) fn caller(&self, token: &str) -> Option<Caller> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (known, caller) in tokens.iter() {
            if is_same(known, token) {
                found = Some(caller);
            }
        }
        found.cloned()
    }
}

fn is_same(known: &str, token: &str) -> bool {
    known.as_bytes().ct_eq(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: &str = "0123456789abcdef-ann";
    const BOB: &str = "0123456789abcdef-bob";

    #[test]
    fn a_token_names_its_caller_until_it_is_revoked() {
        let tokens = Tokens::new();
        tokens.add_assignee("ann", ANN).unwrap();
        tokens.clone().add_operator("bob", BOB).unwrap();
        assert_eq!(tokens.caller(ANN), Some(Caller::Assignee("ann".into())));
        assert_eq!(tokens.caller(BOB), Some(Caller::Operator("bob".into())));
        assert_eq!(tokens.caller(&ANN[..19]), None);
        assert_eq!(tokens.caller(""), None);
        assert!(tokens.revoke(ANN) && !tokens.revoke(ANN));
        assert_eq!(tokens.caller(ANN), None);
    }

    #[test]
    fn a_token_that_can_be_guessed_or_that_another_has_is_refused() {
        let tokens = Tokens::new();
        for weak in ["", "short", "0123456789abcde", "with a space in it", "non-ascii-é-0123456789"]
        {
            let refused = tokens.add_assignee("ann", weak);
            assert_eq!(refused, Err(TokenError::Token { name: "ann".into() }), "{weak:?}");
        }
        assert_eq!(tokens.add_assignee("", ANN), Err(TokenError::Name { bytes: 0 }));
        tokens.add_assignee("ann", ANN).unwrap();
        tokens.add_assignee("ann", ANN).unwrap();
        let taken = TokenError::Taken { name: "ann".into() };
        assert_eq!(tokens.add_operator("ann", ANN), Err(taken));
        assert!(!format!("{tokens:?}").contains(ANN));
    }
}
