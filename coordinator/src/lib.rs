//! The coordinator: deployment, starts, events, timers, schedules, operator actions.
//!
//! [`Service`] is one handle on the stores; any number of them may work at once, none is a leader.

pub mod access;
pub mod api;
pub mod cloudevents;
mod deploy;
mod effects;
mod events;
mod intake;
mod named;
mod operator;
mod outward;
mod reach;
mod reconciler;
mod schedules;
pub mod server;
mod service;
mod start;
mod subflows;
mod timers;
mod windows;

pub use deploy::{Deletion, Deployed, Deployment};
pub use intake::{Taken, keys, read_message};
pub use operator::{Action, Operator};
pub use outward::Outward;
pub use reach::Reach;
pub use service::{Service, draw_name};
pub use start::{Refused, StartRequest, Started};

pub use swirl_runtime::Error;
