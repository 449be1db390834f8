//! Decides what a commit changes: a pure function of what is known of the scope ([`Snapshot`]) and the commit
//! ([`Request`]). All backends use it. A backend reads the snapshot, and writes what the [`Decision`] says if everything
//! that it was made from is still the same; otherwise it decides again.
//!
//! Nothing here knows how anything is stored. Three things are left to the backends, since they concern scopes that come
//! and go meanwhile: the branches of a fork that is closed, all other scopes at the end of an instance, and the numbers
//! of the fork that a branch reports to, which its siblings change too ([`Numbers::count`]).

mod answer;
mod branch;
mod decision;
mod forks;
mod inbox;
mod numbers;
mod parts;
mod request;
mod snapshot;
mod status;
mod timers;

pub use answer::{Answer, Undecided};
pub use branch::{BranchChange, BranchPosition, Report};
pub use decision::{Decision, LeaseChange, decide};
pub use forks::{ChangedFork, ForkChange, ForkState, Revived};
pub use inbox::{Inbox, Item, Kind};
pub use numbers::{Numbers, failures};
pub use parts::{CommitParts, ForkCommand, Size};
pub use request::Request;
pub use snapshot::{Flags, Hold, OwnFork, Record, Snapshot, has_work};
pub use status::{StatusChange, is_over};
pub use timers::TimerChange;

/// A size in KiB. Anything smaller counts as zero.
pub fn kib(bytes: usize) -> usize {
    bytes >> 10
}
