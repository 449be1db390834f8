//! The worker: the pool that works on tasks from the queue, and the process.

mod given_up;
mod health;
pub mod pool;
pub mod process;
