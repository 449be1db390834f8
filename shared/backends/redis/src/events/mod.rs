//! The event log: waits for events, early events, and the instances that events start.
//!
//! Nothing here is locked, and one event concerns keys with many hash tags, so ingesting an event takes several small
//! scripts. This is correct for these reasons:
//!
//! - An event is put where waits search for it before it searches for waits, and a wait is put where events search for
//!   it before it searches for events. So whichever comes second finds the first.
//! - An event that isn't kept, and that no instance waited for when its waits were searched before its turn, isn't for
//!   waits that begin later.
//! - One script delivers an event to an instance ([`deliver`]) and records that the instance has consumed it. So any
//!   process may repeat the delivery any number of times.
//! - A change of an instance's waits marks the instance as dirty. The mark is removed only when the buckets agree with
//!   the instance ([`index`]). If a crash leaves the mark, the reconciler continues.
//! - The outcome of an event is recorded at the end of its ingestion ([`shard`]). Until then a repeated ingestion does
//!   everything again, which changes nothing that is done. Recording isn't needed if the outcome can only be the same
//!   again: the event starts nothing, or only workflows that it starts by itself, whose names are recorded when its
//!   ingestion begins ([`alone`]).
//! - Instances that are being started claim their correlation values until the event is acknowledged ([`starts`]). By
//!   then they are among the active instances.

mod alone;
mod begun;
mod deliver;
mod early;
mod expire;
mod index;
mod log;
mod names;
mod set_sizes;
mod sets;
mod shard;
mod spread;
mod starts;
mod surplus;
mod turns;
mod waiting;

pub(crate) use begun::Begun;
pub(crate) use names::{digest, event_digest, offer};
pub(crate) use surplus::Dropped;
pub(crate) use turns::Turns;
