//! Runs the contract in memory and on disk.

use std::sync::Arc;

use futures::executor::block_on;
use swirl_contract::Backend;
use swirl_embedded::{Embedded, Options};

fn options() -> Options {
    Options {
        instance_bytes: swirl_contract::INSTANCE_BYTES,
        join_limits: Some(swirl_contract::JOIN_LIMITS),
        retain_bytes: swirl_contract::KEPT_BYTES,
        sets_bytes: swirl_contract::SETS_BYTES,
        ..Options::default()
    }
}

fn backend(store: Embedded, guard: impl Send + Sync + 'static) -> Backend {
    let store = Arc::new(store);
    Backend::of(store, guard)
}

mod memory {
    use super::*;

    swirl_contract::suite!(backend(Embedded::memory_with(options()), ()), block_on);
    swirl_contract::pending_suite!(backend(Embedded::memory_with(options()), ()), block_on);
}

mod durable {
    use super::*;

    fn open() -> Backend {
        let folder = tempfile::tempdir().unwrap();
        backend(Embedded::open(folder.path(), options()).unwrap(), folder)
    }

    swirl_contract::suite!(open(), block_on);
}
