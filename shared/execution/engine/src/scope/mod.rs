//! The scope of a step, and what changes it.

pub(crate) mod apply;
pub(crate) mod conditions;
pub(crate) mod ctx;
pub(crate) mod env;
pub(crate) mod eval;
pub(crate) mod frames;
pub(crate) mod ids;
pub(crate) mod instance;
pub(crate) mod listening;
pub(crate) mod merging;
pub(crate) mod next;
pub(crate) mod rejection;
pub(crate) mod room;
pub(crate) mod starts;
pub(crate) mod task_view;
pub(crate) mod timers;
pub(crate) mod validation;

pub(crate) use ctx::{Check, Ctx};
pub(crate) use next::{Next, Step};
pub(crate) use rejection::Rejection;
