//! How events match the scopes that wait for them and the instances that they start: plain rules
//! that every backend shares. Each backend decides itself where records are kept, and which process
//! wins a race.

mod buckets;
mod fit;
mod listeners;
mod sets;
mod starts;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use buckets::{
    attributes_of, attributes_to_keep, bucket_of, buckets_of, buckets_with, is_valued,
};
pub use fit::{Fit, addressee, fit, learnt};
pub use listeners::Listeners;
pub use sets::Set;
pub use starts::{Outcome, PendingStart, Role, group_of, has_all, roles};

/// Values that an instance or an event correlates by: by attribute name, in lower case.
pub type Correlation = BTreeMap<Arc<str>, String>;
