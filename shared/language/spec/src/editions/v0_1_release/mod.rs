//! The release of edition 0.1 (April 2020).
//!
//! The tasks draft developed from it within weeks. So `tasks` reads both, and has a table of the differences
//! (docs/language.md#decision-100).

use swirl_documents::source::Node;

use super::tasks;
use super::tasks::variant::RELEASE;
use crate::build::ctx::Ctx;

pub(super) fn properties() -> Vec<&'static str> {
    tasks::properties_of(&RELEASE)
}

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    tasks::read_as(ctx, &RELEASE, root);
}
