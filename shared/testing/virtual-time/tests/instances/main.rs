//! Instances in virtual time, beyond what a scenario can express.

#![allow(clippy::unwrap_used, reason = "a test")]

mod admission;
mod cancelled;
mod chains;
mod events;
mod expensive;
mod fixture;
mod freeing;
mod keys;
mod migrated;
mod pending;
mod reconciler;
mod rerun;
mod retried;
mod schedules;
mod secrets;
mod stored;
mod suspects;
mod suspended;
