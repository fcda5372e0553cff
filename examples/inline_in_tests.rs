//! Shows how to test a task without a queue. Run this file with `cargo test --example
//! inline_in_tests`.

use std::{collections::HashMap, io, sync::Arc};

use optimus::Data;

/// The value of one unit of each currency, in cents.
#[derive(Clone)]
struct Rates(Arc<HashMap<&'static str, u64>>);

/// Returns the value of an amount in cents.
#[optimus::task(max_retry = 3)]
async fn convert(amount: u64, currency: String, #[data] rates: Rates) -> io::Result<u64> {
    let rate = rates.0.get(currency.as_str());
    let rate = rate.ok_or_else(|| io::Error::other(format!("no rate for {currency}")))?;
    Ok(amount * rate)
}

fn rates() -> Rates {
    Rates(Arc::new(HashMap::from([("EUR", 100), ("CHF", 104)])))
}

#[tokio::main]
async fn main() -> Result<(), optimus::BoxError> {
    let data = Data::new().with(rates());
    let cents = convert(50, "CHF".to_owned()).perform_inline_with(data).await?;
    println!("50 CHF are {cents} cents");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `inline` runs the call in this test: the macro's code, the data and the handler. It uses no
    /// queue and does not retry.
    #[tokio::test]
    async fn a_call_is_run_here_and_now() {
        let data = Data::new().with(rates());
        let cents = convert(2, "EUR".to_owned()).perform_inline_with(data).await;
        assert_eq!(cents.unwrap(), 200);
    }

    /// The error is the handler's own, so a test can check its type.
    #[tokio::test]
    async fn the_handlers_error_comes_back_as_it_is() {
        let data = Data::new().with(rates());
        let problem = convert(2, "XAU".to_owned()).perform_inline_with(data).await.unwrap_err();
        assert_eq!(problem.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::Other);
    }

    /// A worker without the data would refuse to start. An inline call returns an error that names
    /// the missing data.
    #[tokio::test]
    async fn missing_data_is_named() {
        let problem = convert(2, "EUR".to_owned()).perform_inline().await.unwrap_err();
        assert!(problem.to_string().contains("Rates"), "{problem}");
    }

    /// A test can also call the function itself, under its other name.
    #[tokio::test]
    async fn the_body_is_a_plain_function() {
        assert_eq!(convert_body(3, "CHF".to_owned(), rates()).await.unwrap(), 312);
    }
}
