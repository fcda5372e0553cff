//! Calls that are gathered: each passes one value, and the function takes the list of them.

use optimus::{BoxError, Context, Each, Submit, Task, TaskRecord, Worker};

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Event {
    user: u64,
    r#type: String,
}

/// The key is a field of the call.
#[optimus::task(gather = "10s | 500", by = "{user}", biz_id = "{user}-{type}", max_retry = 1)]
async fn digest(events: Vec<Event>, ctx: Context) -> Result<usize, BoxError> {
    assert_eq!(ctx.calls().len(), events.len());
    Ok(events.len())
}

/// A plain function, and the value of the worker.
#[optimus::task(gather = "250ms|2", by = "{rows.0}")]
fn insert(rows: Vec<(u64, String)>, #[data] table: String) -> Result<String, BoxError> {
    Ok(format!("{table}: {rows:?}"))
}

/// The key is the call itself; the type has another path.
#[optimus::task(gather = "1h30m | 10000", by = "user-{users:>03}")]
async fn greet(mut users: ::std::vec::Vec<u64>) {
    users.clear();
}

/// One key for all calls.
#[optimus::task(gather = "1s | 10")]
async fn all(#[serde(default)] numbers: Vec<Option<u64>>) {
    let _ = numbers;
}

macro_rules! of {
    ($list:ty) => {
        #[optimus::task(gather = "1s | 10")]
        async fn from_macro(list: $list) {
            let _ = list;
        }
    };
}

of!(Vec<u8>);

/// A result for each call. The run itself does not fail.
#[optimus::task(gather = "1s | 10")]
async fn half(numbers: Vec<u64>) -> Each<u64> {
    let half = |n: u64| if n % 2 == 0 { Ok(n / 2) } else { Err("it is odd") };
    numbers.into_iter().map(half).collect()
}

type Lengths = Result<Each<usize>, BoxError>;

/// A plain function, and an alias.
#[optimus::task(gather = "1s | 10")]
fn length(texts: Vec<String>) -> Lengths {
    Ok(texts.iter().map(String::len).collect())
}

/// Nobody reads the results, but each call ends by itself.
struct Unread;

#[optimus::task(gather = "1s | 10", result_ttl = 0)]
async fn unread(numbers: Vec<u64>) -> Result<Each<Unread>, BoxError> {
    Ok(numbers.into_iter().map(|n| if n > 0 { Ok(Unread) } else { Err("zero") }).collect())
}

fn gather(call: impl Submit) -> optimus::Gather {
    let record = call.into_submission().unwrap().stored();
    TaskRecord::decode(record).unwrap().gather.expect("it is gathered")
}

fn key<T: Task>(call: optimus::Call<T>) -> String {
    gather(call).by
}

#[tokio::main]
pub(super) async fn main() {
    let event = Event { user: 7, r#type: "sold".into() };
    let record = digest(event.clone()).into_submission().unwrap().stored();
    let record = TaskRecord::decode(record).unwrap();
    assert_eq!(record.biz_id.as_deref(), Some("7-sold"));
    let found = gather(digest(event.clone()));
    assert_eq!((&*found.by, found.wait.as_secs(), found.max), ("7", 10, 500));
    assert_eq!(key(digest(event.clone()).by("ann")), "ann");
    assert_eq!(key(insert((7, "a".into()))), "7");
    assert_eq!(key(greet(5)), "user-005");
    assert_eq!(key(all(None)), "");
    assert_eq!(gather(from_macro(1)).max, 10);

    assert_eq!(digest(event.clone()).perform_inline().await.unwrap(), 1);
    assert_eq!(half(8).perform_inline().await.unwrap(), 4);
    assert_eq!(half(7).perform_inline().await.unwrap_err().to_string(), "it is odd");
    assert_eq!(length("four".into()).perform_inline().await.unwrap(), 4);
    unread(1).perform_inline().await.unwrap();
    assert_eq!(unread(0).perform_inline().await.unwrap_err().to_string(), "zero");
    let own = half_body(vec![2, 3]).await.into_results();
    assert_eq!((own.len(), *own[0].as_ref().unwrap()), (2, 1));
    let events = vec![event; 3];
    let worker = Worker::builder("memory://gather").only_named_tasks().task(digest).task(greet);
    drop(worker.build().unwrap());
    assert_eq!(events.len(), 3);
    let data = optimus::Data::new().with("t".to_owned());
    let text = insert((7, "a".into())).perform_inline_with(data).await.unwrap();
    assert_eq!(text, r#"t: [(7, "a")]"#);
}
