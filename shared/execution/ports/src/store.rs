//! The complete store that a process is built with.

use crate::execution::ExecutionStore;
use crate::queries::InstanceQueries;

/// Everything that a backend stores about instances. Only the code that assembles a process names it; all other code
/// takes the port that it needs, [`ExecutionStore`] or [`InstanceQueries`].
pub trait Store: ExecutionStore + InstanceQueries {}

impl<S: ExecutionStore + InstanceQueries + ?Sized> Store for S {}
