//! Counts the memory of a tree while it is built, and aborts at the limits.

use super::{Limits, Result_, fatal};
use crate::codes;
use crate::diagnostic::{Diagnostic, SourceLocation};

pub(super) struct Budget<'l> {
    limits: &'l Limits,
    nodes: usize,
    bytes: usize,
}

impl<'l> Budget<'l> {
    pub fn new(limits: &'l Limits) -> Budget<'l> {
        Budget {
            limits,
            nodes: 0,
            bytes: 0,
        }
    }

    /// Reserves room for one more value with this many bytes of text and pointer.
    pub fn take(&mut self, bytes: usize, place: impl FnOnce() -> SourceLocation) -> Result_<()> {
        self.nodes += 1;
        self.bytes(bytes, place)
    }

    /// Reserves room for more bytes.
    pub fn bytes(&mut self, bytes: usize, place: impl FnOnce() -> SourceLocation) -> Result_<()> {
        self.bytes += bytes;
        if self.nodes > self.limits.nodes_max || self.bytes > self.limits.expanded_bytes_max {
            let message = format!(
                "the document has too many values: at most {} are allowed, with {} bytes of text",
                self.limits.nodes_max, self.limits.expanded_bytes_max
            );
            let mut error = fatal(codes::TOO_MANY_VALUES, place(), message);
            error.hint = Some("aliases count with their whole values".to_owned());
            return Err(error);
        }
        Ok(())
    }

    /// `depth` is that of the list or object that is about to begin, from 1.
    pub fn deeper(&self, depth: usize, place: impl FnOnce() -> SourceLocation) -> Result_<()> {
        if depth <= self.limits.depth_max {
            return Ok(());
        }
        Err(too_deep(self.limits, place()))
    }
}

pub(super) fn too_deep(limits: &Limits, place: SourceLocation) -> Box<Diagnostic> {
    let message = format!(
        "lists and objects are nested too deeply: at most {} levels are allowed",
        limits.depth_max
    );
    let mut error = fatal(codes::TOO_DEEP, place, message);
    let hint = "move the inner part into a document of its own, such as a sub-workflow";
    error.hint = Some(hint.to_owned());
    error
}
