//! The store that a process is built with.

use crate::execution::ExecutionStore;
use crate::queries::InstanceQueries;

/// Everything that a backend keeps of instances. Only the code that puts a process together names it: everything else
/// takes the port that it needs, [`ExecutionStore`] or [`InstanceQueries`].
pub trait Store: ExecutionStore + InstanceQueries {}

impl<S: ExecutionStore + InstanceQueries + ?Sized> Store for S {}
