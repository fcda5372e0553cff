//! Calls in a process without an installed client, so no other test may run in this process.

mod common;

use std::time::Duration;

use common::Double;
use optimus_core::{Call, Task};

const SOON: Duration = Duration::from_secs(20);

fn double(number: i64) -> Call<Double> {
    Double { number }.call()
}

#[tokio::test]
async fn the_error_of_a_verb_without_an_installed_client_names_what_to_do() {
    let problems = [
        double(1).perform_async().await.unwrap_err(),
        double(1).perform_in(SOON).await.unwrap_err(),
        double(1).perform_at("2100-01-01T00:00:00Z".parse().unwrap()).await.unwrap_err(),
    ];
    for problem in problems {
        assert!(problem.is_invalid() && problem.to_string().contains("install()"), "{problem}");
    }
    assert_eq!(double(1).perform_inline().await.unwrap(), 2);
}
