//! A user that changes how many tasks of a lane run at once.

use super::User;
use crate::flow_limits::changing_lanes;

impl User {
    pub(super) async fn set_width(&mut self) {
        let queue = self.queues.pick(&mut self.random).to_string();
        let lanes = changing_lanes();
        let (key, widest) = lanes[self.random.usize(..lanes.len())];
        let lane = self.client.lane(queue, key);
        if self.random.u8(..3) == 0 {
            drop(lane.reset_width().await);
        } else {
            drop(lane.set_width(self.random.u16(1..=widest)).await);
        }
    }
}
