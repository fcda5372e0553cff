//! A step that takes a result fills the templates that need only its other arguments.

use optimus::{BoxError, Client, TaskRecord, Uuid, chain, key, step};

#[optimus::task]
async fn load(part: u64) -> Result<Vec<u64>, BoxError> {
    Ok(vec![part])
}

#[optimus::task]
async fn number() -> Result<u64, BoxError> {
    Ok(1)
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Day {
    number: u32,
}

#[optimus::task(biz_id = "{day.number:>04}", outcome_ttl = "1h")]
async fn opened(day: Day) {
    let _ = day;
}

#[optimus::task(
    biz_id = "{day.number:>04}",
    lane = "{{days}}-{zone}/{day.number}",
    after = opened,
)]
async fn imported(day: Day, parts: Vec<u64>, zone: String) -> Result<u64, BoxError> {
    Ok(parts.len() as u64 + u64::from(day.number) + zone.len() as u64)
}

#[optimus::task(gather = "1s | 5", by = "all")]
async fn store(days: Vec<u64>) -> Result<(), BoxError> {
    let _ = days;
    Ok(())
}

#[optimus::task(biz_id = "{day}", lane = "{zone}")]
async fn closed(day: u64, zone: String) -> Result<u64, BoxError> {
    let _ = zone;
    Ok(day)
}

async fn record(client: &Client, id: &optimus::TaskId) -> TaskRecord {
    client.inspector().get(id).await.unwrap().unwrap().record.unwrap().unwrap()
}

#[tokio::main]
pub(super) async fn main() {
    check().await.unwrap();
}

async fn check() -> optimus::Result<()> {
    let client = Client::connect("memory://templates").await?;
    let flow = chain![
        load(3),
        imported(Day { number: 7 }, _, "eu".to_owned()),
        closed(_, "eu".to_owned()).priority(3).biz_id(17),
        store,
    ];
    let handle = client.submit_flow(flow).await?;
    let step = record(&client, handle.steps()[1].id()).await;
    assert_eq!(step.biz_id.as_deref(), Some("0007"));
    assert_eq!(step.lane.unwrap().key, "{days}-eu/7");
    let after = step.after.unwrap();
    assert_eq!(after.prerequisites.len(), 2, "{after:?}");
    let named = after.prerequisites[1].to_string();
    assert_eq!(named, "default/opened with biz id \"0007\"");
    let step = record(&client, handle.steps()[2].id()).await;
    assert_eq!((step.biz_id.as_deref(), step.lane.unwrap().key.as_str()), (Some("17"), "eu"));
    assert_eq!(record(&client, handle.id()).await.gather.unwrap().by, "all");

    // Elsewhere than in `chain!`, an option may be set later, so it is missed at the submit.
    let later = number().then(step!(closed(_, "eu".to_owned())));
    let problem = client.submit_flow(later).await.unwrap_err().to_string();
    assert!(problem.contains("its argument day"), "{problem}");
    assert!(problem.ends_with("step!(closed(_, zone).biz_id(…))"), "{problem}");
    let set = step!(closed(_, "eu".to_owned()));
    client.submit_flow(number().then(set.biz_id(18))).await?;

    // Anything that can be printed is a biz id.
    for named in
        [key(opened, 7_u32), key(opened, &7_u64), key(opened, Uuid::nil()), key(opened, "7")]
    {
        drop(load(1).after(named));
    }
    Ok(())
}
