//! A task whose handler blocks its thread.

use optimus_core::{BoxError, Context, DataKey, Task};
use optimus_testkit::Hold;
use serde::{Deserialize, Serialize};

/// Keeps its thread until the test releases its [`Hold`].
#[derive(Serialize, Deserialize)]
pub struct KeepThread {}

impl Task for KeepThread {
    const NAME: &'static str = "keep_thread";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Hold>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let hold: Hold = ctx.data().unwrap();
        hold.keep_thread();
        Ok(())
    }
}
