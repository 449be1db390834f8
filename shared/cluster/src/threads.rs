//! The threads of a process.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Gives the thread's other tasks, which may be those of the connections to the servers, to another thread.
pub fn aside(work: &mut dyn FnMut()) {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// The number of threads that drive scopes: two on one processor, so that slow expressions leave one to
/// all others.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |threads| threads.get().max(2))
}
