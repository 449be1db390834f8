//! Instances.

use crate::words::words;

words! {
    /// The status of an instance.
    Status {
        Running = "running",
        Completed = "completed",
        Faulted = "faulted",
        Cancelled = "cancelled",
        Terminated = "terminated",
    }
}

impl From<swirl_model::instance::Status> for Status {
    fn from(status: swirl_model::instance::Status) -> Status {
        Status::from(status.as_str())
    }
}
