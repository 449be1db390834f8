//! The tests of the embedded store.

mod contract;
mod crash;
mod ends;
mod limits;
mod restart;
