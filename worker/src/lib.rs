//! The worker: tasks from the queue, so many at once; and the process.

mod given_up;
mod health;
pub mod pool;
pub mod process;
