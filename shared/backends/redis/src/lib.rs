//! The store, the event log and the definitions on Redis 7: a single server, one behind sentinels,
//! or Redis Cluster.
//!
//! What belongs to an instance is changed by one script at a time, which carries out all of an
//! operation or nothing. `docs/adr/0008-redis-layout.md` has the keys and says why.
//!
//! Invariants: all keys of a script share a hash tag; leases run by Redis' clock, never by that of
//! a process; what a script is called with is bounded, and so is the time of each call.
#![allow(dead_code, reason = "the store and the event log are being written")]

mod connect;
mod events;
mod keys;
mod options;
mod script;

use std::sync::Arc;

use redis::Cmd;

use connect::Link;
use keys::Keys;
pub use options::{ConnectError, Options, Tls, Topology};

/// A handle; its clones share the connections.
#[derive(Clone)]
pub struct Redis {
    inner: Arc<Inner>,
}

struct Inner {
    link: Link,
    keys: Keys,
    options: Options,
}

impl Redis {
    /// Connects, and notes or checks how the namespace is divided.
    pub async fn connect(options: Options) -> Result<Redis, ConnectError> {
        check_options(&options)?;
        let link = Link::open(&options).await?;
        let redis = Redis {
            inner: Arc::new(Inner {
                link,
                keys: Keys::new(options.namespace.clone(), options.shards),
                options,
            }),
        };
        redis.check_shards().await?;
        Ok(redis)
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// An instance is found by its shard: with another number of them, none would be.
    async fn check_shards(&self) -> Result<(), ConnectError> {
        let Options {
            namespace, shards, ..
        } = self.options();
        let meta = self.keys().global("meta");
        let mut note = Cmd::new();
        note.arg("HSETNX").arg(&meta).arg("shards").arg(*shards);
        self.query::<i64>(note).await?;
        let mut read = Cmd::new();
        read.arg("HGET").arg(&meta).arg("shards");
        let found: String = self.query(read).await?;
        if found != shards.to_string() {
            return Err(ConnectError::Shards {
                namespace: namespace.clone(),
                found,
                wanted: *shards,
            });
        }
        Ok(())
    }
}

fn check_options(options: &Options) -> Result<(), ConnectError> {
    let bad = |name, reason: &str| {
        Err(ConnectError::Option {
            name,
            reason: reason.to_owned(),
        })
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if options.namespace.is_empty() || !options.namespace.chars().all(plain) {
        return bad("namespace", "letters, digits, '-', '_' and '.' are allowed");
    }
    if options.shards == 0 || options.shards > 4096 {
        return bad("shards", "it must be from 1 to 4096");
    }
    if options.response_timeout_ms == 0 || options.connect_timeout_ms == 0 {
        return bad("response_timeout_ms", "a limit of 0 lets nothing succeed");
    }
    Ok(())
}
