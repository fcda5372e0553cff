//! Tasks can come from `macro_rules!`, with names, types and option values passed in.
#![deny(warnings)]

use optimus::{Task, TaskFn};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Row {
    id: u64,
}

macro_rules! exporter {
    ($vis:vis $name:ident($arg:ident: $ty:ty), $timeout:expr, $queue:literal) => {
        #[optimus::task(timeout = $timeout, queue = $queue, biz_id = "{row.id}-{extra}")]
        $vis async fn $name(
            $arg: $ty,
            extra: $crate::from_macro_rules::Row2,
            #[data] factor: u64,
        ) -> Result<u64, String> {
            Ok($arg.id * factor + extra.len() as u64)
        }
    };
}

type Row2 = String;

exporter!(pub(crate) export(row: Row), 60 , "exports");

fn check<A, F: TaskFn<A>>(_: F) {
    let task: F::Task = serde_json::from_str(r#"{"row":{"id":4},"extra":"x"}"#).unwrap();
    assert_eq!(task.biz_id().unwrap(), "4-x");
    assert_eq!(F::Task::options().queue_name(), "exports");
}

#[tokio::main]
pub(super) async fn main() {
    check(export);
    let data = optimus::Data::new().with(10_u64);
    let call = export(Row { id: 4 }, "xy".to_owned());
    assert_eq!(call.perform_inline_with(data).await.unwrap(), 42);
}
