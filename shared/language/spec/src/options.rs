//! Options for reading.

use std::collections::{BTreeSet, HashSet};

use swirl_model::time::Timestamp;

use swirl_documents::source::Limits;

/// The context of a deployment that isn't part of the document.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of the functions that the caller answers itself, such as a scenario's mocks. They are accepted even if
    /// this version doesn't support their type.
    pub provided: HashSet<String>,
    /// Custom function types that this installation supports, if known. Other types that the language doesn't define
    /// are then errors, and otherwise warnings.
    pub custom_types: Option<BTreeSet<String>>,
    /// Ids of the deployed workflows, if known. References to others are then warnings.
    pub workflows: Option<BTreeSet<String>>,
    /// The current time, if known. Schedules that are over by then are warnings.
    pub now: Option<Timestamp>,
    /// A document on the web that can't be had is a warning. The reading can't be run then.
    pub may_lack_documents: bool,
    /// The limits for the document, and for each document that it refers to.
    pub limits: Limits,
}
