//! Documents to canonical workflows and diagnostics.
