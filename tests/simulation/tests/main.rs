//! The tests of the simulation.

mod answers;
mod capabilities;
mod cluster;
mod fits;
mod mutants;
mod pure;
mod redis;
mod seeds;
mod tasks;
