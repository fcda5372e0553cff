//! Tokens and passwords, of which only hashes are kept: [`Secrets`].

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::identity::Identity;
use crate::ConsoleError;

/// A shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// Each request is compared with all secrets.
const SECRETS_MAX: usize = 1_000;

/// The SHA-256 of a secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    pub(super) fn to_hex(&self) -> String {
        hex(self.0)
    }

    fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// Returns bytes in hexadecimal digits.
pub(super) fn hex(bytes: [u8; 32]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Whose token or password is which. Only hashes are kept, and they are compared in a time that
/// does not depend on what is right.
#[derive(Clone, Default)]
pub struct Secrets(Vec<(Digest, Identity)>);

impl Secrets {
    /// Makes a set without secrets, which lets nobody in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token or password of somebody, who may have several.
    ///
    /// # Errors
    /// [`ConsoleError::Secret`] if it has fewer than 16 bytes, or if somebody else has it.
    pub fn add(self, identity: Identity, secret: &str) -> Result<Self, ConsoleError> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(ConsoleError::Secret(format!(
                "the secret of {:?} has {} bytes; use {SECRET_BYTES_MIN} or more, made at random",
                identity.name,
                secret.len()
            )));
        }
        self.push(identity, Digest::of(secret.as_bytes()))
    }

    /// Adds the SHA-256 of a token or password, as 64 hexadecimal digits, so that the secret itself
    /// is in no configuration. `printf %s "$SECRET" | sha256sum | cut -c-64` prints it.
    ///
    /// # Errors
    /// [`ConsoleError::Secret`] if it has another form, if it is that of an empty secret, or if
    /// somebody else has it.
    pub fn add_sha256(self, identity: Identity, digest: &str) -> Result<Self, ConsoleError> {
        let digest = Digest::from_hex(digest).ok_or_else(|| {
            ConsoleError::Secret(format!(
                "the SHA-256 of {:?} is not 64 hexadecimal digits",
                identity.name
            ))
        })?;
        if digest == Digest::of(b"") {
            return Err(ConsoleError::Secret(format!(
                "the SHA-256 of {:?} is that of an empty secret; was the variable that holds the \
                 secret set?",
                identity.name
            )));
        }
        self.push(identity, digest)
    }

    fn push(mut self, identity: Identity, digest: Digest) -> Result<Self, ConsoleError> {
        if self.0.len() >= SECRETS_MAX {
            return Err(ConsoleError::Secret(format!(
                "there are {SECRETS_MAX} secrets, which is the limit"
            )));
        }
        if let Some((_, owner)) = self.0.iter().find(|(known, _)| *known == digest)
            && *owner != identity
        {
            return Err(ConsoleError::Secret(format!(
                "the secret of {:?} is that of {:?}, too; make another one",
                identity.name, owner.name
            )));
        }
        self.0.push((digest, identity));
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whose secret this is; if a name is given, only that person's.
    pub(crate) fn owner(&self, secret: &str, name: Option<&str>) -> Option<&Identity> {
        let asked = Digest::of(secret.as_bytes());
        let mut found = u32::MAX;
        for (at, (known, identity)) in (0..).zip(&self.0) {
            let is_named = name.is_none_or(|name| {
                Digest::of(name.as_bytes()) == Digest::of(identity.name.as_bytes())
            });
            let is_right = known.0.ct_eq(&asked.0) & Choice::from(u8::from(is_named));
            found.conditional_assign(&at, is_right);
        }
        self.0.get(found as usize).map(|(_, identity)| identity)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, identity)| identity)).finish()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn a_secret_belongs_to_one_person_and_is_kept_as_its_hash() {
        let ann = Identity::new("ann", Role::Admin);
        let bob = Identity::new("bob", Role::Viewer);
        // The SHA-256 of "another secret of bob".
        let hash =
            Digest::of(b"another secret of bob").0.map(|byte| format!("{byte:02x}")).concat();
        let secrets = Secrets::new()
            .add(ann.clone(), "the secret of ann")
            .and_then(|secrets| secrets.add_sha256(bob.clone(), &hash))
            .unwrap();
        assert_eq!(secrets.owner("the secret of ann", None), Some(&ann));
        assert_eq!(secrets.owner("another secret of bob", None), Some(&bob));
        assert_eq!(secrets.owner("another secret of bob", Some("bob")), Some(&bob));
        assert_eq!(secrets.owner("another secret of bob", Some("ann")), None);
        for wrong in ["", "the secret of an", "the secret of anna", &hash] {
            assert_eq!(secrets.owner(wrong, None), None, "{wrong}");
        }
        assert!(!format!("{secrets:?}").contains("secret of"));
        assert!(secrets.clone().add(bob.clone(), "the secret of ann").is_err());
        assert!(secrets.clone().add(bob.clone(), "short").is_err());
        assert!(secrets.clone().add_sha256(bob.clone(), "é".repeat(32).as_str()).is_err());
        let empty = Digest::of(b"").0.map(|byte| format!("{byte:02x}")).concat();
        assert!(secrets.add_sha256(bob, &empty).is_err());
    }
}
