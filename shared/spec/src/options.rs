//! The options of reading.

use std::collections::{BTreeSet, HashSet};

use swirl_model::time::Timestamp;

use crate::source::Limits;

/// The knowledge of a deployment besides the document.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of the functions that the caller answers itself, such as a scenario's mocks. Those
    /// of a type that this version doesn't carry out are accepted then.
    pub provided: HashSet<String>,
    /// Custom function types that this installation carries out, where known. Other types that the
    /// language doesn't have are then refused, otherwise warned of.
    pub custom_types: Option<BTreeSet<String>>,
    /// Ids of the workflows that are deployed, where known: references to others are warned of.
    pub workflows: Option<BTreeSet<String>>,
    /// The time, where it is known: schedules that are over by then are warned of.
    pub now: Option<Timestamp>,
    /// Of the document, and of each that it refers to.
    pub limits: Limits,
}
