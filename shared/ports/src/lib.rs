//! Traits of the world around the engine: store, queue, event bus, function caller, clock, secrets.
