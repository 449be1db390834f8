//! The threads of a process.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

/// As much as the main thread of a program has. A call runs deep in the drive of its scope, and what a client library does
/// to connect needs more than tokio's 2 MiB in a build without optimisation. Memory is only taken for what is used.
const STACK_BYTES: usize = 8 << 20;

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

/// Threads for the turns of scopes. Whatever those compute, for example in an endless loop of states, the threads that
/// serve requests and health are free.
pub struct WorkThreads(Option<Runtime>);

impl WorkThreads {
    /// # Errors
    /// The threads cannot be started.
    pub fn start() -> io::Result<WorkThreads> {
        let mut threads = Builder::new_multi_thread();
        let threads = threads
            .worker_threads(self::threads())
            .thread_stack_size(STACK_BYTES)
            .thread_name("work");
        Ok(WorkThreads(Some(threads.enable_all().build()?)))
    }

    /// For spawning work on them. `None` while they end.
    pub fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for WorkThreads {
    /// Doesn't wait for the work: an async context must not block.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
