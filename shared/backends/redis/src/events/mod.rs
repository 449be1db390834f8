//! The event log: waits for events, early events, and the instances that events start.
//!
//! Nothing here is locked, and one event concerns keys of many hash tags, so an offer is a row of
//! small scripts. It is sound for these reasons:
//!
//! - An event is put where waits look for it before it looks for waits, and a wait is put where
//!   events look for it before it looks for events: the second finds the first.
//! - An event that isn't kept, and that no instance waited for when it was looked for before its turn, isn't for waits that
//!   begin later.
//! - An event is delivered by one script of the instance ([`deliver`]), which records that the instance
//!   had it. So any process may try it any number of times.
//! - A change of an instance's waits marks it as dirty; the mark is removed only when the buckets agree
//!   with the instance ([`index`]). A crash leaves the mark, and the reconciler continues.
//! - The outcome of an event is recorded at the end of the offer ([`shard`]); until then a repeated offer
//!   does all of it again, which changes nothing that is done. It need not be recorded if it can only be the same again:
//!   the event starts nothing, or only workflows that it starts by itself, whose names are recorded when its offer
//!   begins ([`alone`]).
//! - Instances that are being started hold a claim on their correlation values until the event is
//!   confirmed ([`starts`]); by then they are among the active ones.

mod alone;
mod begun;
mod deliver;
mod early;
mod expire;
mod index;
mod log;
mod names;
mod shard;
mod spread;
mod starts;
mod waiting;

pub(crate) use begun::Begun;
pub(crate) use names::event_digest;
