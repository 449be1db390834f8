//! What states and actions are made of.

pub(crate) mod abandon;
pub(crate) mod attempts;
pub(crate) mod calls;
pub(crate) mod catch;
pub(crate) mod compensation;
pub(crate) mod continuation;
pub(crate) mod emit;
pub(crate) mod ends;
pub(crate) mod enter;
pub(crate) mod entries;
pub(crate) mod errors;
pub(crate) mod extensions;
pub(crate) mod finish;
pub(crate) mod forks;
pub(crate) mod handlers;
pub(crate) mod listen;
pub(crate) mod lists;
pub(crate) mod publish;
pub(crate) mod raise;
pub(crate) mod request;
pub(crate) mod retries;
mod subscription;
pub(crate) mod tasks;
pub(crate) mod waits;
pub(crate) mod ways;
