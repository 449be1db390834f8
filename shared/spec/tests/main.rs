//! The tests of the readers.

mod conformance;
mod drafts;
mod examples;
mod fragments;
mod spring_2020;
mod text;
mod text_later;
mod wrong;
