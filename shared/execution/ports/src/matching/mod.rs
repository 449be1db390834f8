//! Pure rules, shared by all backends, for matching events with the scopes that wait for them and the instances that
//! they start. Each backend decides for itself where to keep records and which process wins a race.

mod buckets;
mod fit;
#[cfg(test)]
mod fixture;
mod listeners;
mod sets;
mod starts;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use buckets::{
    attributes_of, attributes_to_keep, bucket_of, buckets_of, buckets_with, groups_to_keep,
    is_valued,
};
pub use fit::{Fit, addressee, fit, learnt};
pub use listeners::Listeners;
pub use sets::{Set, check_sets_bytes, choose, loans};
pub use starts::{
    Outcome, PendingStart, Role, beginning, group_of, has_all, is_alone, roles, starts_alone,
};

/// The correlation values of an instance or an event, keyed by lower-case attribute name.
pub type Correlation = BTreeMap<Arc<str>, String>;
