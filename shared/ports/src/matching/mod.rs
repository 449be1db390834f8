//! How events go with those who wait for them and with what they start: plain rules that every
//! backend shares. Where things are kept, and who is faster, is each backend's own matter.

mod buckets;
mod fit;
mod sets;
mod starts;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use buckets::{attributes_of, attributes_to_keep, bucket_of, buckets_of, is_valued};
pub use fit::{Fit, addressee, fit, learnt};
pub use sets::Set;
pub use starts::{Begun, Outcome, Role, group_of, has_all, roles};

/// Values that an instance or an event correlates by: by attribute name, in lower case.
pub type Correlation = BTreeMap<Arc<str>, String>;
