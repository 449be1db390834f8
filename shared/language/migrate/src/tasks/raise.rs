//! Tasks that fault the instance.

use swirl_model::Data;
use swirl_model::error::OWN_TYPES;

use super::writer::object;

/// A task that faults the instance.
pub(super) fn raised(name: &str, detail: &str) -> Data {
    let error = object([
        ("type", Data::string(format!("{OWN_TYPES}runtime"))),
        ("status", Data::int(500)),
        ("title", Data::string(name)),
        ("detail", Data::string(detail)),
    ]);
    object([("raise", object([("error", error)]))])
}
