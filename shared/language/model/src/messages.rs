//! The messages that a call takes while it runs (DSL 1.0, "AsyncAPI Subscription").

use std::time::Duration;

use crate::{Data, WorkflowError};

/// How many messages a subscription takes at most.
pub const MESSAGES_MAX: usize = 1000;

/// Decides about the messages of a subscription.
pub trait Consumes: std::fmt::Debug + Send + Sync {
    /// The time after which the subscription ends by itself.
    fn span(&self) -> Option<Duration>;

    /// If the call takes one message out of a subscription that goes on behind it: the number of that subscription within
    /// the scope.
    fn subscription(&self) -> Option<u32> {
        None
    }

    /// Whether it takes this message. A message on which its expression fails isn't taken.
    fn takes(&self, message: &Data) -> bool;

    /// Whether it has enough with the messages taken so far.
    ///
    /// # Errors
    /// The expression fails.
    fn is_enough(&self, taken: &[Data]) -> Result<bool, WorkflowError>;
}
