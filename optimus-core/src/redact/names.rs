//! Names whose values are secrets: [`is_secret`].

/// A name with one of these in it is that of a secret, whatever else it has.
const PARTS: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "authorization",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "credential",
    "cookie",
    "creditcard",
    "cardnumber",
    "iban",
    "cvv",
    "cvc",
    "ssn",
];
/// A name with one of these words is that of a secret: `card_holder`, but not `discard`.
const WORDS: [&str; 8] = ["pwd", "pass", "card", "pan", "pin", "otp", "jwt", "auth"];

/// Returns whether the value of a field, header or variable of this name is a secret.
pub fn is_secret(name: &str) -> bool {
    let letters: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    PARTS.iter().any(|part| letters.contains(part))
        || words(name).any(|word| WORDS.contains(&word.as_str()))
}

/// Returns the words of `card_holder`, `card-holder` and `cardHolder` in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    let (mut words, mut last) = (vec![String::new()], ' ');
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && last.is_lowercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        last = c;
    }
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "password",
            "PASSWORD",
            "user_password",
            "newPassword",
            "passwd",
            "db.pass",
            "access_token",
            "refreshToken",
            "client-secret",
            "Authorization",
            "proxy-authorization",
            "api_key",
            "X-Api-Key",
            "apiKey",
            "card",
            "cardNumber",
            "card_holder",
            "credit_card",
            "IBAN",
            "cvv2",
            "set-cookie",
            "userPin",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["", "discard", "cardinality", "company", "spin", "user", "key", "compass"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
