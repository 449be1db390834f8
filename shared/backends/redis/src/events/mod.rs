//! The event log: who waits for events, which came early, what they start.
//!
//! Nothing here is locked, and one event concerns keys of many hash tags, so an offer is a row of
//! small scripts. What makes it sound:
//!
//! - An event is put where waits look for it before it looks for waits, and a wait is put where
//!   events look for it before it looks for events: whoever comes second finds the first.
//! - An event is delivered by one script of the instance ([`deliver`]), which notes that the instance
//!   had it. So it may be tried any number of times, by anybody.
//! - What changes an instance's waits marks it as dirty; the mark goes only when the buckets say
//!   what the instance says ([`index`]). A crash leaves the mark, and the reconciler goes on.
//! - What came of an event is noted at the end of the offer ([`shard`]); until then a repeated offer
//!   does all of it once more, which changes nothing that is done.
//! - Instances that are being started hold a claim on their correlation values until the event is
//!   confirmed ([`starts`]); by then they stand among the active ones.

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

pub(crate) use names::event_digest;
