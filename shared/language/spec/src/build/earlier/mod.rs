//! Forms of earlier editions that several editions accept, each as a function that rewrites a part to the form of 0.8
//! (docs/language.md#decision-96).

pub(crate) mod errors;
pub(crate) mod events;
pub(crate) mod find;
pub(crate) mod identity;
pub(crate) mod loose;
pub(crate) mod older;
pub(crate) mod shapes;
pub(crate) mod snapshots;
pub(crate) mod states;
pub(crate) mod words;
