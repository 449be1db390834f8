//! A real cluster under a mix of work while its processes and servers fail.
//!
//! Redis, NATS, coordinators and workers are processes of their own; connections to the servers go
//! through proxies that can be cut. A number of instances is run whose outputs and effects are known
//! beforehand, while faults are injected; then everything is healed, all must end, and every output,
//! call and produced event is compared. Checkers know nothing of how the system works. Beside them may run what
//! tries to take the system down, and what each process takes of memory is noted.

mod api;
mod check;
mod cluster;
mod definitions;
mod faults;
mod hostile;
mod instance;
mod memory;
mod processes;
mod random;
mod run;
mod service;
mod watch;

pub use check::Report;
pub use cluster::Cluster;
pub use faults::Fault;
pub use processes::{Process, Role};
pub use random::Random;
pub use run::{Options, run};
