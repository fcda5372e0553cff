//! The scenes. In each scene, a user needs a few seconds, and the scenes together use each feature:
//! [`Scene`].

use optimus_core::Call;
use optimus_testkit::history::{Found, What};
use tokio::time::sleep;

use super::steps::{self, NEIGHBOURS, ms};
use super::{Actor, operates, operations};
use super::{after, clock_back, dispenses, gathers, groups, history, inspects, lanes, limits};
use super::{one_by_one, scans, schedules, schedules_by_hand, shards, statistics};
use crate::exchange_fault::Fault;
use crate::queues::Queues;
use crate::sources::Sources;
use crate::tasks::{Kind, Rare, Work};
use crate::world::{LEASE, World};

/// A short scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A task, and a wait for its result.
    Submit,
    /// Several tasks of all kinds in one call.
    Batch,
    /// Several tasks with one biz id, before and after the first has ended.
    BizId,
    /// A task that is due later.
    Later,
    /// A task that fails twice.
    Retry,
    /// Tasks that are cancelled in each of the waiting states.
    CancelWaiting,
    /// A task that is cancelled while it runs.
    CancelRunning,
    /// A task among many that is cancelled while it runs, and does not stop.
    CancelDeaf,
    /// A task that is cancelled while it runs, and requeued at once.
    CancelRequeue,
    /// Tasks of several queues, one of which is paused.
    Queues,
    /// Redis does not answer for longer than the workers' leases, which differ.
    Outage,
    /// Tasks whose code panics outside their handlers.
    Hostile,
    /// A task that runs alone, because it lost its workers, and succeeds.
    Quarantine,
    /// A task that is submitted twice with one id.
    SameId,
    /// A store that is rolled back.
    Failover,
    /// Tasks that return nothing, whose client waits late; a failover loses some of them.
    Elimination,
    /// A dead task and a cancelled task that are requeued.
    Requeue,
    /// A task that never ends by itself.
    Timeout,
    /// A task whose worker is asked to end.
    Release,
    /// Tasks whose worker is killed. Some of them are asked to stop.
    Reap,
    /// A task for whose end two handles wait.
    Await,
    /// A task that kills its workers, next to others.
    Poison,
    /// A queue that is paused.
    Pause,
    /// Tasks that snooze, ask for a retry, cancel themselves, or fail for good.
    ControlWords,
    /// An operator who reads all data.
    Inspect,
    /// The removal of old data.
    Purge,
    /// Tasks in each state that an operator deletes.
    Delete,
    /// A task that the workers do not know.
    Misfit,
    /// The store's clock is set backward repeatedly.
    Clock,
    /// A task that lasts longer than a lease, for a worker that was idle among many.
    Crowd,
    /// Tasks of lanes. One loses its worker while others wait.
    Lanes,
    /// Tasks that wait for others, here and in another queue.
    After,
    /// Tasks with limits. One loses its worker while others wait.
    Limits,
    /// Results that are handed on, and groups.
    Groups,
    /// Tasks that run together.
    Gathers,
    /// Tasks of lanes and with limits, for a worker that handles one at a time, or several at once.
    OneByOne,
    /// Schedules: of code, over a deploy, and made at run time.
    Schedules,
    /// Schedules whose calls the scene makes itself, with every option.
    SchedulesByHand,
    /// Shards of workers that come and go, while an operator changes them.
    Shards,
    /// Rows of a source, while its target fails, a worker dies and an operator changes it.
    Scans,
    /// A dispenser with several assignees, and a rebuild.
    Dispenses,
    /// Gates, runs and permits while the clock is set back.
    ClockBack,
    /// Statistics of some days, and processes that an operator sees and asks for something.
    Statistics,
    /// Deaths of some days that a queue keeps, and an operator who reads and removes them.
    History,
    /// Operations on many tasks, whose carriers fall silent.
    Operations,
}

impl Scene {
    /// All scenes.
    pub const ALL: [Self; 45] = [
        Self::Submit,
        Self::Batch,
        Self::BizId,
        Self::Later,
        Self::Retry,
        Self::CancelWaiting,
        Self::CancelRunning,
        Self::CancelDeaf,
        Self::CancelRequeue,
        Self::Queues,
        Self::Outage,
        Self::Failover,
        Self::Elimination,
        Self::Hostile,
        Self::Quarantine,
        Self::SameId,
        Self::Requeue,
        Self::Timeout,
        Self::Release,
        Self::Reap,
        Self::Await,
        Self::Poison,
        Self::Pause,
        Self::ControlWords,
        Self::Inspect,
        Self::Purge,
        Self::Delete,
        Self::Misfit,
        Self::Clock,
        Self::Crowd,
        Self::Lanes,
        Self::After,
        Self::Limits,
        Self::Groups,
        Self::Gathers,
        Self::OneByOne,
        Self::Schedules,
        Self::SchedulesByHand,
        Self::Shards,
        Self::Scans,
        Self::Dispenses,
        Self::ClockBack,
        Self::Statistics,
        Self::History,
        Self::Operations,
    ];

    /// Returns whether that fault is meaningful in this scene.
    pub fn bears(self, fault: Fault) -> bool {
        match self {
            // A store that loses a fence, and whose clock is set backward, would give the fence
            // again.
            Self::Clock | Self::ClockBack => !matches!(fault, Fault::RolledBack { .. }),
            // A submit that arrives days late opens a ledger that its client does not know.
            Self::Purge | Self::Statistics => !matches!(fault, Fault::Late(_)),
            _ => true,
        }
    }

    /// Returns whether the workers know every task.
    pub(super) fn knows_all(self) -> bool {
        self != Self::Misfit
    }

    /// Returns what the workers have in their code.
    pub(super) fn sources(self) -> Sources {
        match self {
            Self::Schedules => Sources::Release(1),
            Self::Shards => Sources::Shards,
            Self::Scans => Sources::Rows,
            _ => Sources::Nothing,
        }
    }

    /// Returns whether each task runs only once without faults.
    pub(super) fn runs_each_once(self) -> bool {
        matches!(self, Self::Submit | Self::Outage | Self::Crowd)
    }

    /// Returns the number of workers.
    pub(super) fn workers(self) -> usize {
        if self == Self::Crowd { 10 } else { 2 }
    }

    /// Returns the queues.
    pub(super) fn queues(self) -> Queues {
        match self {
            Self::Queues => Queues::of(&[1, 1, 100]),
            Self::After | Self::Groups => Queues::of(&[1, 1, 1]),
            Self::Schedules => Queues::of(&[1, 1]),
            _ => Queues::default(),
        }
    }

    pub(super) async fn run_scene(self, actor: Actor) {
        match self {
            Self::Submit => actor.wait_for(1, actor.submit(1, Kind::Lasts(0)).await).await,
            Self::Batch => steps::batch(&actor).await,
            Self::BizId => steps::biz_id(&actor).await,
            Self::Later => steps::later(&actor).await,
            Self::Retry => actor.wait_for(1, actor.submit(1, Kind::Fails(2)).await).await,
            Self::CancelWaiting => operates::cancel_waiting(&actor).await,
            Self::CancelRunning => operates::cancel_running(&actor).await,
            Self::CancelDeaf => operates::cancel_deaf(&actor).await,
            Self::CancelRequeue => operates::cancel_requeue(&actor).await,
            Self::Queues => steps::queues(&actor).await,
            Self::Outage => steps::outage(&actor).await,
            Self::Failover => steps::failover(&actor).await,
            Self::Elimination => steps::elimination(&actor).await,
            Self::Hostile => steps::hostile(&actor).await,
            Self::Quarantine => steps::quarantine(&actor).await,
            Self::SameId => steps::same_id(&actor).await,
            Self::Requeue => operates::requeue(&actor).await,
            Self::Timeout => {
                let call = Work::new(1, Kind::Hangs).timeout(ms(300)).max_retry(1);
                actor.wait_for(1, actor.call(1, call).await).await;
            }
            Self::Release => steps::release(&actor).await,
            Self::Reap => steps::reap(&actor).await,
            Self::Await => {
                let handle = actor.submit(1, Kind::Lasts(200)).await;
                tokio::join!(actor.wait_for(1, handle.clone()), actor.wait_for(1, handle));
            }
            Self::Poison => steps::poison(&actor).await,
            Self::Pause => operates::pause(&actor).await,
            Self::ControlWords => steps::control_words(&actor).await,
            Self::Inspect => inspects::inspect(&actor).await,
            Self::Purge => steps::purge(&actor).await,
            Self::Delete => operates::delete(&actor).await,
            Self::Misfit => {
                drop(actor.call(1, Call::new(Rare { number: 1 })).await);
                sleep(ms(300)).await;
            }
            Self::Clock => steps::clock(&actor).await,
            Self::Lanes => lanes::lanes(&actor).await,
            Self::After => after::after(&actor).await,
            Self::Limits => limits::limits(&actor).await,
            Self::Groups => groups::groups(&actor).await,
            Self::Gathers => gathers::gathers(&actor).await,
            Self::OneByOne => one_by_one::one_by_one(&actor).await,
            Self::Schedules => schedules::schedules(&actor).await,
            Self::SchedulesByHand => schedules_by_hand::schedules(&actor).await,
            Self::Shards => shards::shards(&actor).await,
            Self::Scans => scans::scans(&actor).await,
            Self::Dispenses => dispenses::dispenses(&actor).await,
            Self::ClockBack => clock_back::clock_back(&actor).await,
            Self::Statistics => statistics::statistics(&actor).await,
            Self::History => history::history(&actor).await,
            Self::Operations => operations::operations(&actor).await,
            Self::Crowd => {
                // By then, each worker has had a heartbeat together with all others.
                sleep(2 * LEASE).await;
                let call = Work::new(1, Kind::Hangs).timeout(2 * LEASE).max_retry(0);
                actor.wait_for(1, actor.call(1, call).await).await;
            }
        }
    }

    /// Checks the additional promises of this scene.
    pub(super) fn check(self, world: &World) {
        if self == Self::Lanes {
            lanes::check(world);
        }
        if self == Self::After {
            after::check(world);
        }
        if self == Self::Dispenses {
            dispenses::check(world);
        }
        if self == Self::Schedules {
            schedules::check(world);
        }
        if self == Self::Shards {
            shards::check(world);
        }
        if self == Self::Scans {
            scans::check(world);
        }
        for event in world.network.journal.events() {
            let What::Found { task, state: Found::Dead, .. } = event.what else { continue };
            if self == Self::Poison && task >= NEIGHBOURS {
                world.network.complain(format!("neighbour {task} is dead"));
            }
        }
    }
}
