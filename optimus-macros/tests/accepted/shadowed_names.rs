//! Names of the prelude, of serde and of the generated code can mean something else around a task.
#![deny(warnings)]

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Json<T>(T);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task(u8);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct String;

pub type Result<T> = std::result::Result<T, std::io::Error>;

pub mod core {}

#[allow(non_upper_case_globals, dead_code, reason = "what this test is about")]
const order: u8 = 1;

#[allow(unused_macros, reason = "what this test is about")]
macro_rules! vec {
    () => {};
}

#[optimus::task(biz_id = "{task.0}")]
async fn convert(task: Task, json: Json<Call>, string: Option<String>) -> Result<Json<Task>> {
    let _ = (json, string);
    Ok(Json(task))
}

#[optimus::task]
async fn serialize(value: u8, serializer: u8, ctx: u8, __p0: u8, f: u8) -> Result<u8> {
    Ok(value + serializer + ctx + __p0 + f)
}

#[tokio::main]
pub(super) async fn main() {
    let answer = convert(Task(1), Json(Call), None).perform_inline().await.unwrap();
    assert_eq!(answer, Json(Task(1)));
    assert_eq!(serialize(1, 2, 3, 4, 5).perform_inline().await.unwrap(), 15);
}
