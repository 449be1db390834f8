//! The worker: the pool that processes tasks from the queue, and the process itself.

mod health;
pub mod pool;
pub mod process;
