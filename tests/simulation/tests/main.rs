//! The tests of the simulation.

#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod capabilities;
mod cluster;
mod fits;
mod mutants;
mod pure;
mod redis;
mod seeds;
mod tasks;
