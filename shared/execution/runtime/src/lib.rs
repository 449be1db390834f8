//! The driver: acquire, step, apply, commit, flush, acknowledge.
//!
//! The same loop runs in the worker, in `swirl dev`, in `swirl test` and in the simulator. It depends on no executor,
//! no particular clock and no backend.

use std::sync::Arc;

mod catalog;
mod compiled;
mod driver;
mod effects;
mod interests;
mod observe;
mod places;
mod put_off;
mod rates;
mod registry;
mod shares;

pub use catalog::{Catalog, Deployed};
pub use driver::{
    Driven, Driver, FirstTurn, RECENT_CALLS_MAX, RECORDED_BYTES_MAX, Recording, Settings, Suspects,
    log_span, take_first_turn,
};
pub use effects::{Effects, flush};
pub use interests::interests;
pub use observe::{CallOutcome, Called, Cause, Observed, Observer, trace_events};
pub use places::{Place, Places};
pub use put_off::PutOff;
pub use rates::{Rates, StartCause, StartLimits};
pub use registry::{Lower, Registry, Unknown};
pub use shares::{Permit, Shares};

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] swirl_ports::Error),
    #[error("the definition {id} cannot be run: {reason}")]
    Definition { id: String, reason: String },
    /// Trying again would crash the next process.
    #[error(
        "{count} attempts to continue it have killed their worker: it may need more memory than the worker has, or make the worker crash"
    )]
    Attempts { count: u32 },
    /// The limit on how fast instances start is reached. Retrying later helps.
    #[error("instances of {workflow} are started too fast; retry in {wait_ms} ms")]
    TooFast { workflow: Arc<str>, wait_ms: i64 },
}

impl Error {
    /// Whether retrying can help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Store(error) => error.is_retryable(),
            Error::TooFast { .. } => true,
            Error::Definition { .. } | Error::Attempts { .. } => false,
        }
    }
}
