//! Each step of a chain takes the result of the step before it: by its name, as the argument `_`
//! with options, or not at all; groups and chains are steps of each other.

use optimus::{BoxError, Client, GroupResults, MemberEnd, Worker, chain, group, step};

#[optimus::task]
async fn reserve(order: u64) -> Result<String, BoxError> {
    Ok(format!("shelf {order}"))
}

#[optimus::task]
async fn pay(account: u64, #[serde(rename = "from")] shelf: String) -> Result<String, BoxError> {
    Ok(format!("{shelf} paid by {account}"))
}

#[optimus::task]
fn ship(ctx: optimus::Context, paid: String) -> Result<usize, String> {
    assert_eq!(ctx.header("van"), Some("red"));
    Ok(paid.len())
}

#[optimus::task]
async fn note(what: String) {
    assert_eq!(what, "sold");
}

#[optimus::task(queue = "other")]
async fn double(number: u64) -> Result<u64, BoxError> {
    Ok(number * 2)
}

#[optimus::task]
async fn times(number: u64, by: u64) -> Result<u64, BoxError> {
    Ok(number * by)
}

#[optimus::task]
async fn sum(numbers: Vec<u64>) -> Result<u64, BoxError> {
    Ok(numbers.iter().sum())
}

#[optimus::task]
async fn sum_pages(numbers: GroupResults<u64>) -> Result<u64, BoxError> {
    let (mut sum, mut ends) = (0, numbers.read());
    while let Some((_, end)) = ends.next().await? {
        let MemberEnd::Success(number) = end else { return Err("a member failed".into()) };
        sum += number;
    }
    Ok(sum)
}

mod elsewhere {
    #[optimus::task]
    pub async fn count() -> Result<u64, optimus::BoxError> {
        Ok(1)
    }
}

#[tokio::main]
pub(super) async fn main() {
    sell().await.unwrap();
}

async fn sell() -> optimus::Result<()> {
    let url = "memory://flows";
    let client = Client::connect(url).await?.install();
    let worker = Worker::builder(url).queues(["default", "other"]).only_named_tasks();
    let worker = worker.task(reserve).task(pay).task(ship).task(note).task(double).task(times);
    let worker = worker.task(sum).task(sum_pages).task(elsewhere::count).build()?;
    let flows = async {
        let sale = chain![
            reserve(7),
            pay(22, _).max_retry(7),
            ship(_).header("van", "red"),
            note("sold".to_owned()),
        ];
        sale.perform_async().await?.result().await?;

        let length = reserve(7).then(step!(pay(1, _))).then(step!(ship(_).header("van", "red")));
        assert_eq!(client.submit_flow(length).await?.result().await?, "shelf 7 paid by 1".len());

        let doubled = group((1..=10).map(double));
        assert_eq!(doubled.perform_async().await?.results().await?.len(), 10);
        let total = group((1..=10).map(double)).then(sum).perform_async().await?;
        assert_eq!(total.result().await?, 110);
        let total = group((1..=10).map(double)).then(sum_pages).perform_async().await?;
        assert_eq!(total.result().await?, 110);

        // A flow would never call it.
        let closure = elsewhere::count().then(|number: u64| times(number, 2));
        let problem = client.submit_flow(closure).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("step!(times(_))"));

        // 3 -> (3, 6, 9) -> doubled each -> sum.
        let fan = chain![
            elsewhere::count(),
            times(_, 3),
            group((1..=3).map(|by| chain![times(_, by), double])),
            sum,
            double,
        ];
        assert_eq!(fan.perform_async().await?.result().await?, 72);
        Ok::<(), optimus::Error>(())
    };
    worker.run_until(flows).await??;
    Ok(())
}
