//! A real cluster under a mix of work while its processes and servers fail.
//!
//! Redis, NATS, coordinators and workers are separate processes. Connections to the servers go through proxies that can
//! cut them. Instances with known outputs and effects run while faults are injected. Then the faults end, all instances
//! must end, and every output, call and produced event is compared. The checkers know nothing about how the system
//! works. Hostile activity may run at the same time, and the memory of each process is recorded.

mod any_coordinator;
mod api;
mod check;
mod cluster;
mod definitions;
mod faults;
mod hostile;
mod instance;
mod memory;
mod over;
mod processes;
mod publisher;
mod queues;
mod random;
mod run;
mod service;
mod tasks;
mod watch;

pub use any_coordinator::AnyCoordinator;
pub use check::Report;
pub use cluster::Cluster;
pub use faults::Fault;
pub use processes::{Process, Role};
pub use random::Random;
pub use run::{Options, run};
