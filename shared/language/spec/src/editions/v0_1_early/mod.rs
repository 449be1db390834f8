//! Edition 0.1, early draft (October 2019): the reader of 0.1 with the early draft's table.

use swirl_documents::source::Node;

use super::v0_1;
use crate::build::ctx::Ctx;

pub(super) fn properties() -> Vec<&'static str> {
    v0_1::properties_of(&v0_1::EARLY)
}

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    v0_1::read_as(ctx, root, &v0_1::EARLY);
}
