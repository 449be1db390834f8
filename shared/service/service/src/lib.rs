//! Turns all external inputs into instances and their inputs: deployment, starts, events, timers,
//! schedules, operator actions.
//!
//! [`Service`] is a handle on the stores. Any number of services may work at once; none is a leader.

mod audit;
mod batches;
mod business_keys;
mod calendar;
pub mod cloudevents;
mod deploy;
mod effects;
mod events;
mod explain;
mod following;
mod freeing;
mod intake;
mod lifecycle;
mod migrate;
mod once;
mod open_tasks;
mod operator;
mod pending;
mod preview;
mod publishing;
pub mod reach;
mod recent;
mod reconciler;
mod schedules;
mod service;
mod start;
mod subflows;
mod timers;
mod unfit;
mod windows;

pub use audit::{AUDIT_KEPT, Audited, Auditing};
pub use batches::{BadOperation, BatchLimits, Batching, Operation, RATE, RATE_MAX};
pub use calendar::{BACKFILL_MAX, Filled, NotFilled, Planned};
pub use deploy::{Deletion, Deployed, Deployment, instances_of};
pub use following::Follower;
pub use intake::{Arrival, NoEvent, Taken, keys, read_message};
pub use lifecycle::{LifecycleCounts, LifecycleEvents};
pub use migrate::{Moved, Target};
pub use operator::{Action, NotRemoved, Operator};
pub use preview::{Preview, Replaced};
pub use publishing::PublishingEffects;
pub use recent::Recent;
pub use service::{Service, draw_name};
pub use start::{Refused, StartRequest, Started};
pub use unfit::{Refusal, Unfit};

pub use swirl_runtime::Error;
