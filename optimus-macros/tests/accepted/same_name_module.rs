//! A module can have the name of its task, with the task re-exported next to it.
#![deny(warnings, missing_docs)]

/// Mail.
pub mod send_email {
    /// Sends a mail.
    #[optimus::task]
    pub async fn send_email(to: String) -> Result<(), String> {
        drop(to);
        Ok(())
    }
}

pub use send_email::send_email;

#[tokio::main]
pub(super) async fn main() {
    send_email("ann@example.org".to_owned()).perform_inline().await.unwrap();
    send_email::send_email_body("ann@example.org".to_owned()).await.unwrap();
}
