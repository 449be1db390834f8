//! Runs the contract on one server and on a cluster.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use swirl_contract::Backend;
use swirl_redis::{Options, Redis};
use swirl_servers::{RedisCluster, RedisServer};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

fn quick(options: Options) -> Options {
    Options {
        grace_ms: 0,
        repeat_ms: 0,
        instance_bytes: swirl_contract::INSTANCE_BYTES,
        join_limits: swirl_contract::JOIN_LIMITS,
        retain_bytes: swirl_contract::KEPT_BYTES,
        sets_bytes: swirl_contract::SETS_BYTES,
        ..options
    }
}

fn backend(options: Options, guard: impl Send + Sync + 'static) -> Backend {
    let store = RUNTIME.block_on(Redis::connect(quick(options))).unwrap();
    let store = Arc::new(store);
    Backend::of(store, guard)
}

fn run(case: impl Future<Output = ()>) {
    RUNTIME.block_on(case);
}

mod single {
    use super::*;

    fn make() -> Backend {
        let server = RedisServer::start().unwrap();
        backend(Options::single(server.url()), server)
    }

    swirl_contract::suite!(make(), run);
    swirl_contract::expiry_suite!(make(), run);
    swirl_contract::pending_suite!(make(), run);
}

mod cluster {
    use super::*;

    /// A cluster takes seconds to start, so the cases share one, each in its own namespace.
    fn make() -> Backend {
        static SHARED: Mutex<Weak<RedisCluster>> = Mutex::new(Weak::new());
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mut shared = SHARED.lock().unwrap();
        let cluster = shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(RedisCluster::start(3).unwrap());
            *shared = Arc::downgrade(&cluster);
            cluster
        });
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let options = Options {
            namespace: format!("case{number}"),
            ..Options::cluster(cluster.urls())
        };
        backend(options, cluster)
    }

    swirl_contract::suite!(@one make(), run);
    swirl_contract::expiry_suite!(@one make(), run);
    swirl_contract::pending_suite!(@one make(), run);
}
