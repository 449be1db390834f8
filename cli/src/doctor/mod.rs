//! The check of `swirl doctor` that only a client can make. The others are in `swirl_coordinator::doctor`.

mod api;

pub use api::api;
