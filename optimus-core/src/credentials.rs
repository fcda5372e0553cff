//! Credentials that the program provides, instead of a URL: [`Credentials`].

use std::{fmt, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use crate::{bounded_text::Bounded, control_words::BoxError, guarded_drop::discard};

/// A user of Redis and its password, or a token in place of the password.
///
/// ```
/// # use optimus_core::Credentials;
/// # use std::time::Duration;
/// let fixed: Credentials = ("optimus", "secret").into();
/// let token = Credentials::new("optimus", "eyJ0…").valid_for(Duration::from_secs(900));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) valid_for: Option<Duration>,
}

impl Credentials {
    /// Makes credentials for this user. If Redis only has a password, the user is `default`.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into(), valid_for: None }
    }

    /// Sets how long the credentials are valid. Connections request new ones after three quarters
    /// of that time, or after an hour if it is not set.
    pub fn valid_for(mut self, time: Duration) -> Self {
        self.valid_for = Some(time);
        self
    }
}

impl<U: Into<String>, P: Into<String>> From<(U, P)> for Credentials {
    fn from((user, password): (U, P)) -> Self {
        Self::new(user, password)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("password", &"***")
            .field("valid_for", &self.valid_for)
            .finish()
    }
}

/// Values that the user's function has captured may panic in their drop.
struct Own<F>(Option<F>);

impl<F> Drop for Own<F> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send>>;

/// The program's function that returns credentials. This type is for the other Optimus crates.
#[derive(Clone)]
pub struct AskCredentials(Arc<dyn Fn() -> Answer + Send + Sync>);

impl AskCredentials {
    /// Wraps the function.
    pub fn new<F, R, C>(ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<C, BoxError>> + Send + 'static,
        C: Into<Credentials>,
    {
        let ask = Own(Some(ask));
        Self(Arc::new(move || {
            let asked = ask.0.as_ref().map(|ask| ask());
            Box::pin(async move {
                // The user's error is formatted and dropped here, where its code may panic.
                let asked = asked.ok_or("the function is gone")?.await;
                asked.map(Into::into).map_err(|problem| Bounded::of(&problem))
            })
        }))
    }

    /// Calls the function. A panic becomes an error. The function is user code, so it may take any
    /// time.
    pub(crate) async fn ask(self) -> Result<Credentials, String> {
        let asked = AssertUnwindSafe(async { (self.0)().await }).catch_unwind().await;
        asked.unwrap_or_else(|panic| {
            discard(panic);
            Err("the function panicked".to_owned())
        })
    }
}

impl fmt::Debug for AskCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskCredentials")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded_text::TEXT_BYTES_MAX;

    #[test]
    fn credentials_are_printed_without_the_password() {
        let printed = format!("{:?}", Credentials::new("ann", "5ecret"));
        assert!(printed.contains("ann") && !printed.contains("5ecret"), "{printed}");
    }

    #[tokio::test]
    async fn an_error_or_a_panic_of_the_function_is_an_answer() {
        let now = AskCredentials::new(|| -> std::future::Ready<Result<Credentials, BoxError>> {
            panic!("at once")
        });
        assert!(now.ask().await.unwrap_err().contains("panicked"));
        let later =
            AskCredentials::new(async || -> Result<Credentials, BoxError> { panic!("later") });
        assert!(later.ask().await.unwrap_err().contains("panicked"));
        let failed = AskCredentials::new(async || Err::<Credentials, _>("sealed".into()));
        assert_eq!(failed.ask().await.unwrap_err(), "sealed");
        let long = AskCredentials::new(async || Err::<Credentials, _>("x".repeat(1 << 20).into()));
        assert_eq!(long.ask().await.unwrap_err().len(), TEXT_BYTES_MAX);
    }
}
