//! Inputs that this process expects in inboxes: its commit has completed a fork, and usually it goes on with the parent.
//! So one command reads the parent with that input and the results of the branches, instead of one after another.
//!
//! It is only a guess. If the inbox has anything else, it is read as usual.

use quick_cache::sync::Cache;
use swirl_model::ids::InstanceId;

/// An expectation that is displaced costs one more command.
const INSTANCES_MAX: usize = 4_096;

/// A fork of the root is complete, and this input says so.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub fork: u32,
    pub number: String,
}

pub(crate) struct Expectations(Cache<InstanceId, Expected>);

impl Expectations {
    pub fn new() -> Expectations {
        Expectations(Cache::new(INSTANCES_MAX))
    }

    pub fn add(&self, instance: &InstanceId, expected: Expected) {
        self.0.insert(instance.clone(), expected);
    }

    /// Each is used once: the next input has another number.
    pub fn take(&self, instance: &InstanceId) -> Option<Expected> {
        self.0.remove(instance).map(|(_, expected)| expected)
    }
}
