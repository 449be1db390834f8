//! The contract, in memory and on disk.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use futures::executor::block_on;
use swirl_contract::Backend;
use swirl_embedded::{Embedded, Options};

fn backend(store: Embedded, guard: impl Send + Sync + 'static) -> Backend {
    let store = Arc::new(store);
    Backend {
        store: store.clone(),
        events: store.clone(),
        definitions: store,
        guard: Box::new(guard),
    }
}

mod memory {
    use super::*;

    swirl_contract::suite!(backend(Embedded::memory(), ()), block_on);
}

mod durable {
    use super::*;

    fn open() -> Backend {
        let folder = tempfile::tempdir().unwrap();
        backend(
            Embedded::open(folder.path(), Options::default()).unwrap(),
            folder,
        )
    }

    swirl_contract::suite!(open(), block_on);
}
