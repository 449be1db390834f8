//! The tests of the command, most of them with servers and processes.

#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(unix)]
mod access;
mod authoring;
mod batches;
mod brakes;
mod call;
mod cluster;
mod command_line;
mod config;
mod crash;
mod dead_letters;
mod deployed;
#[cfg(unix)]
mod dev;
mod doctor;
mod effects;
mod functions;
mod joins;
mod kit;
mod lifecycle;
mod migrate;
mod monitored;
mod moves;
mod observe;
mod order;
mod pages;
mod rolling;
mod run;
mod startup;
mod versions;
