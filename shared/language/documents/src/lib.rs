//! Documents and findings about them, without anything of the language: [`source`] parses JSON or YAML text into a tree
//! with locations, [`diagnostic`] and [`codes`] define findings, [`render`] formats them, [`suggest`] guesses the
//! intended word, and [`files`] reads what somebody names.

pub mod codes;
pub mod diagnostic;
pub mod files;
pub mod render;
pub mod source;
pub mod suggest;
