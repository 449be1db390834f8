//! NATS backends: the task queue, incoming and outgoing events, and dead letters.
//!
//! Each namespace has five streams ([`Streams`]): tasks (a work queue), their lanes, joins for coordinators, events,
//! and dead letters. A sixth contains lifecycle events if they are enabled ([`LifecycleStream`]). A task is only a
//! hint, so publishing it doesn't wait for an acknowledgement; the reconciler finds the scopes of lost tasks, even if
//! the whole stream is lost. Publishing an event does wait for its acknowledgement.

mod bus;
mod connect;
mod counts;
mod dead;
mod error;
mod hints;
mod inspect;
mod intake;
mod lanes;
mod lifecycle;
mod message;
mod place;
mod pulling;
mod streams;
mod subject;
mod tasks;
mod together;

pub use bus::{Bus, CORRELATED};
pub use connect::{Auth, Options, Tls, connect, places};
pub use counts::{Backlog, Count, Counts};
pub use dead::{DeadLetters, Letter, Letters};
pub use error::Error;
pub use hints::check;
pub use inspect::Inspected;
pub use intake::{Incoming, Intake};
pub use lifecycle::{LifecycleOptions, LifecycleStream};
pub use streams::{StreamOptions, Streams};
pub use subject::{Template, TemplateError};
pub use tasks::{JoinSource, TaskQueue, TaskSource, read_task, write_task};
