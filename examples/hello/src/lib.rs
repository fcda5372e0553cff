//! The tasks, which the application and the worker share.

/// Greets a user.
#[optimus::task(queue = "mail", timeout = "1m", max_retry = 5)]
pub async fn welcome(user: u64, name: String) -> Result<String, std::io::Error> {
    Ok(format!("Welcome {name}, you are our user {user}"))
}
