//! The worker: function callers, one file a function type.
