//! Turns all external inputs into instances and their inputs: deployment, starts, events, timers,
//! schedules, operator actions.
//!
//! [`Service`] is one handle on the stores; any number of them may work at once, none is a leader.

mod batches;
mod calendar;
pub mod cloudevents;
mod deploy;
mod effects;
mod events;
mod explain;
mod following;
mod intake;
mod lifecycle;
mod migrate;
mod named;
mod once;
mod operator;
mod publishing;
mod reach;
mod recent;
mod reconciler;
mod schedules;
mod service;
mod start;
mod subflows;
mod timers;
mod unfit;
mod windows;

pub use batches::{BadOperation, BatchLimits, Batching, Operation, RATE, RATE_MAX};
pub use calendar::{BACKFILL_MAX, Filled, NotFilled, Planned};
pub use deploy::{Deletion, Deployed, Deployment, instances_of};
pub use explain::{Asks, Explained, Miss, Taker, Why};
pub use following::Follower;
pub use intake::{Taken, keys, read_message};
pub use lifecycle::{LifecycleCounts, LifecycleEvents};
pub use migrate::{Moved, Target};
pub use operator::{Action, NotRemoved, Operator};
pub use publishing::PublishingEffects;
pub use reach::Reach;
pub use recent::{Recent, Seen};
pub use service::{Service, draw_name};
pub use start::{Refused, StartRequest, Started};
pub use unfit::Unfit;

pub use swirl_runtime::Error;
