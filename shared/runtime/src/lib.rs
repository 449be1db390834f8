//! The driver: acquire, step, apply, commit, flush, acknowledge.
