//! The end of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the faults, even if the run is dropped.
pub(crate) struct Over(pub Arc<AtomicBool>);

impl Over {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.set();
    }
}
