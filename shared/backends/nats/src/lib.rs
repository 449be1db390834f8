//! NATS backends: the task queue, the events of the outside world, and what could not be used.
//!
//! Three streams for each namespace ([`Streams`]): tasks (a work queue), events, dead letters. A
//! task is a hint and nothing more, so tasks are published without waiting for an answer; what is
//! lost, also with the whole stream, is found by the reconciler. Events wait for their answer.

mod bus;
mod connect;
mod counts;
mod dead;
mod error;
mod inspect;
mod intake;
mod place;
mod pulling;
mod streams;
mod subject;
mod tasks;

pub use bus::{Bus, CORRELATED};
pub use connect::{Auth, Options, Tls, connect};
pub use counts::{Backlog, Count, Counts};
pub use dead::{DeadLetters, Letter};
pub use error::Error;
pub use inspect::Inspected;
pub use intake::{Incoming, Intake};
pub use streams::{StreamOptions, Streams, check};
pub use subject::{Template, TemplateError};
pub use tasks::{TaskQueue, TaskSource, read_task, write_task};
