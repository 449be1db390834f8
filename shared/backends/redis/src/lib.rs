//! The store, the event log and the definitions on Redis 7: a single server, a server behind Sentinel, or Redis
//! Cluster.
//!
//! One script at a time changes an instance, and its operation takes effect completely or not at all.
//! `docs/adr/0008-redis-layout.md` has the keys and the reasons.
//!
//! Invariants: all keys of a script share a hash tag; leases use the clock of Redis, never that of a process; the size
//! of a script's arguments and the time of each call are limited.

mod activity;
mod admin;
mod attributes;
mod audit;
mod batches;
mod beginnings;
mod branch;
mod business_keys;
mod check;
mod client;
mod cluster;
mod commit;
mod connect;
mod create;
mod creation;
mod definitions;
mod delivered;
mod draft;
mod events;
mod expected;
mod facts;
mod fields;
mod following;
mod fork_bases;
mod format;
mod history;
mod inbox;
mod joins;
mod keys;
mod known;
mod lazy;
mod lifecycle;
mod line;
mod listing;
mod migration;
mod news;
mod node_list;
mod nodes;
mod numbers;
mod options;
mod outbox;
mod overdue;
mod pending_starts;
mod plan;
mod plan_input;
mod processes;
mod reading;
mod recent;
mod record;
mod recorded;
mod reply;
mod reread;
mod retention;
mod script;
mod shards;
mod slots;
mod small;
mod snapshot;
mod store;
mod timers;
mod trend;
mod unread;
mod versions;
mod views;
mod waits;
mod watch;
mod watched;
mod write;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

pub use activity::Activity;
pub use check::{Examined, Finding, Severity};
use connect::Link;
use delivered::Deliveries;
use events::{Dropped, Turns};
use expected::Expectations;
use following::Following;
use fork_bases::ForkBases;
pub use format::NOTICED;
use keys::Keys;
use migration::WholeRead;
use news::News;
pub use options::{ConnectError, FORMAT, Options, Tls, Topology};
pub use reading::Reading;
use script::{Lazy, Script};
use snapshot::Snapshot;
use swirl_ports::Reads;

/// The version of the key layout. A namespace with another layout is rejected because its instances could not be read.
const LAYOUT: u32 = 6;

static META: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/meta.lua")));

/// A handle; its clones share the connections.
#[derive(Clone)]
pub struct Redis {
    inner: Arc<Inner>,
}

struct Inner {
    link: Arc<Link>,
    keys: Keys,
    options: Options,
    /// Identifies this process as the holder of its leases.
    process: String,
    attempts: AtomicU64,
    /// The generation of the latest event that this process has started to handle.
    generation: AtomicU64,
    /// The bytes of events that this process has kept since it last made room for them.
    kept_since: AtomicU64,
    /// The kept events that were dropped since the last sweep.
    dropped: Mutex<Dropped>,
    /// The same for incomplete sets of events.
    sets_since: AtomicU64,
    dropped_sets: Mutex<Dropped>,
    group_turns: Turns,
    /// The random name that this namespace got when it was first used.
    installation: OnceLock<String>,
    /// Commits that read their scope again.
    second_reads: AtomicU64,
    /// The stamp of the last write.
    stamp: AtomicU64,
    following: Following,
    /// The scopes that this process has read, for their commits.
    known: Reads<Snapshot>,
    /// The instances that it has read, for their moves to another version.
    wholes: Reads<WholeRead>,
    fork_bases: ForkBases,
    expectations: Expectations,
    deliveries: Deliveries,
    news: Arc<News>,
    /// Tasks that last as long as the handle.
    running: [AbortHandle; 2],
    shards: RwLock<Vec<u16>>,
    /// Limits the instances that listings read at a time.
    reads: Semaphore,
    /// Limits the large answers that are under way, and the definitions among them.
    large_reads: Semaphore,
    definition_reads: Semaphore,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.running.iter().for_each(AbortHandle::abort);
    }
}

impl Redis {
    /// Connects, and stores or checks the number of shards of the namespace.
    pub async fn connect(options: Options) -> Result<Redis, ConnectError> {
        check_options(&options)?;
        let link = Arc::new(Link::open(&options).await?);
        let news = Arc::new(News::new());
        let process = process_name();
        let listen = news
            .clone()
            .run(link.clone(), options.namespace.clone(), process.clone());
        let watch = link.clone().watch(options.namespace.clone());
        let redis = Redis {
            inner: Arc::new(Inner {
                link,
                keys: Keys::new(options.namespace.clone(), options.shards),
                process,
                attempts: AtomicU64::new(0),
                generation: AtomicU64::new(0),
                kept_since: AtomicU64::new(0),
                dropped: Mutex::default(),
                sets_since: AtomicU64::new(0),
                dropped_sets: Mutex::default(),
                group_turns: Turns::default(),
                installation: OnceLock::new(),
                second_reads: AtomicU64::new(0),
                stamp: AtomicU64::new(0),
                following: Following::default(),
                known: Reads::default(),
                wholes: Reads::default(),
                fork_bases: ForkBases::new(),
                expectations: Expectations::new(),
                deliveries: Deliveries::new(),
                running: [
                    tokio::spawn(listen).abort_handle(),
                    tokio::spawn(watch).abort_handle(),
                ],
                news,
                shards: RwLock::new((0..options.shards).collect()),
                reads: Semaphore::new(listing::READS_MAX),
                large_reads: Semaphore::new(line::LARGE_MAX),
                definition_reads: Semaphore::new(1),
                options,
            }),
        };
        let format = redis.check_namespace().await?;
        redis.take_over(format).await?;
        redis.prepare(&store::freeing()).await;
        redis.prepare(&batches::freeing()).await;
        // Everything works without messages, only later, so an error here isn't worth failing for.
        let limit = Duration::from_millis(redis.options().connect_timeout_ms);
        let mut connected = redis.news().connected();
        if tokio::time::timeout(limit, connected.wait_for(|on| *on))
            .await
            .is_err()
        {
            tracing::warn!(
                "cannot subscribe to Redis, so changes by other processes are noticed late"
            );
        }
        Ok(redis)
    }

    pub(crate) fn reads(&self) -> &Semaphore {
        &self.inner.reads
    }

    pub(crate) fn large_reads(&self) -> &Semaphore {
        &self.inner.large_reads
    }

    pub(crate) fn definition_reads(&self) -> &Semaphore {
        &self.inner.definition_reads
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The name that distinguishes this namespace of this installation from all others.
    pub fn installation(&self) -> &str {
        self.inner.installation.get().map_or("", String::as_str)
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    pub(crate) fn news(&self) -> &News {
        &self.inner.news
    }

    /// How often the common data of a fork's branches was already cached.
    pub fn known_fork_bases(&self) -> u64 {
        self.inner.fork_bases.hits()
    }

    pub(crate) fn known(&self) -> &Reads<Snapshot> {
        &self.inner.known
    }

    pub(crate) fn wholes(&self) -> &Reads<WholeRead> {
        &self.inner.wholes
    }

    pub(crate) fn fork_bases(&self) -> &ForkBases {
        &self.inner.fork_bases
    }

    pub(crate) fn expectations(&self) -> &Expectations {
        &self.inner.expectations
    }

    pub(crate) fn deliveries(&self) -> &Deliveries {
        &self.inner.deliveries
    }

    pub(crate) fn process(&self) -> &str {
        &self.inner.process
    }

    /// A unique number for each attempt to get a lease, since the same attempt may reach Redis twice.
    pub(crate) fn attempt(&self) -> u64 {
        self.inner.attempts.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn last_generation(&self) -> u64 {
        self.inner.generation.load(Ordering::Relaxed)
    }

    pub(crate) fn kept_since(&self) -> &AtomicU64 {
        &self.inner.kept_since
    }

    pub(crate) fn dropped(&self) -> MutexGuard<'_, Dropped> {
        self.inner
            .dropped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sets_since(&self) -> &AtomicU64 {
        &self.inner.sets_since
    }

    pub(crate) fn dropped_sets(&self) -> MutexGuard<'_, Dropped> {
        self.inner
            .dropped_sets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn group_turns(&self) -> &Turns {
        &self.inner.group_turns
    }

    pub(crate) fn note_generation(&self, generation: u64) {
        self.inner
            .generation
            .fetch_max(generation, Ordering::Relaxed);
    }

    /// Checks the number of shards and the layout. With another number of shards no instance would be found, and with
    /// another layout none could be read.
    async fn check_namespace(&self) -> Result<String, ConnectError> {
        let Options {
            namespace, shards, ..
        } = self.options();
        let keys = [self.keys().global("meta")];
        let drawn = RandomState::new().build_hasher().finish();
        let drawn = format!("{}{drawn:016x}", self.process());
        let format = self.options().format.to_string();
        let args = [shards.to_string(), LAYOUT.to_string(), drawn, format];
        let notes: (String, String, String, String, String) =
            self.eval(&META, &keys, &args).await?;
        let (found, layout, installation, format, followed) = notes;
        self.set_follows(followed == "1");
        if layout != args[1] {
            return Err(ConnectError::Layout {
                namespace: namespace.clone(),
            });
        }
        if found != args[0] {
            return Err(ConnectError::Shards {
                namespace: namespace.clone(),
                found,
                wanted: *shards,
            });
        }
        let _ = self.inner.installation.set(installation);
        Ok(format)
    }
}

/// A unique name for each handle, across machines.
fn process_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = format!(
        "{:?} {} {} {:?} {:p}",
        std::env::var_os("HOSTNAME"),
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed),
        now.unwrap_or_default(),
        &COUNT,
    );
    blake3::hash(seed.as_bytes()).to_hex()[..16].to_owned()
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
        return bad(
            "response_timeout_ms",
            "with a limit of 0 nothing could succeed",
        );
    }
    Ok(())
}
