//! The results of the calls of a run are kept as those of other tasks.

use optimus::Each;

struct Secret;

#[optimus::task(gather = "10s | 500")]
async fn not_kept(numbers: Vec<u64>) -> Result<Each<Secret>, String> {
    Ok(numbers.iter().map(|_| Secret).collect())
}

type Results = Result<Each<u64>, String>;

/// Nobody keeps the results, and an alias hides them.
#[optimus::task(result_ttl = 0)]
async fn of_one_call(number: u64) -> Results {
    Ok([number].into_iter().collect())
}

fn main() {}
