//! The records on disk: a log of changes, and a base into which older changes are merged from time to time.
//!
//! | file in `records/` | holds |
//! | --- | --- |
//! | `manifest` | which of the other files belong to the store, and the length of each that is complete |
//! | `N.base` | the record of every key as of some change, in the order of the keys |
//! | `N.log` | the changes after that, one frame each; the last file is being written |
//! | `acked` | the number of the last change that was acknowledged |
//!
//! Everything is read and checked when the store is opened: each frame has a length, a checksum and a number that
//! follows the one before, so a change can't be missing from the middle; the manifest gives the files and their lengths,
//! so none can be missing or cut; `acked` says how far the last file must reach. A change that was acknowledged is
//! there, or opening fails and changes nothing. Only what follows the last acknowledged change, which a crash may have
//! cut in two, is removed.
//!
//! `acked` is written before a change is acknowledged, and synced when nothing else happens for a second. If the power
//! fails within that second, it may name an earlier change. The log is complete even then, but damage to its very last
//! change can no longer be told from a write that the power cut.
//!
//! Opening with [`Options::accept_loss`](crate::Options::accept_loss) writes what can be read as a new store, and keeps
//! the damaged files beside it. `docs/adr/0004-embedded-store.md` says why the files
//! are our own.

mod base;
mod create;
mod files;
mod frame;
mod history;
mod load;
mod place;
pub mod raw;
mod salvage;
mod writer;

pub(crate) use create::create;
pub(crate) use load::load;
pub(crate) use place::{make, open_place};
pub(crate) use salvage::{Gone, rebuild};
pub(crate) use writer::Disk;
