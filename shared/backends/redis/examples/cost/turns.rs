//! Turns of the smallest kind.

use swirl_contract::kit;
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::ScopeRef;
use swirl_model::scope::Scope;
use swirl_ports::{Acquired, Commit, Committed, ExecutionStore, Lease};
use swirl_redis::Redis;

/// Reads a scope without a lease.
pub async fn read(redis: &Redis, scope: &ScopeRef) -> (Lease, Scope) {
    match redis.read_snapshot(scope, 30_000).await.unwrap() {
        Acquired::Held(held) => (held.lease.clone(), kit::scope_of(&held.record)),
        other => panic!("{scope}: {other:?}"),
    }
}

/// Commits a turn with four entries of history. Returns the token of the lease that it took.
pub async fn commit(
    redis: &Redis,
    lease: &Lease,
    scope: &Scope,
    commands: Vec<Command>,
    consumed: &[String],
    release: bool,
) -> Option<u64> {
    let entry = HistoryEntry {
        data: None,
        at: kit::at(0),
        scope: scope.id.clone(),
        event: Event::Joined {
            fork: 1,
            in_state: None,
        },
        data_until: None,
    };
    let commit = Commit {
        lease: lease.clone(),
        scope: scope.clone(),
        consumed: consumed.to_vec(),
        refused: Vec::new(),
        history: vec![entry; 4],
        commands,
        at: kit::at(0),
        require_unchanged_inbox: false,
        fits: false,
        release,
        lease_ms: 30_000,
    };
    match redis.commit(commit).await.unwrap() {
        Committed::Done { token, outbox, .. } => {
            if !outbox.is_empty() {
                redis.flushed(&outbox).await.unwrap();
            }
            token
        }
        other => panic!("{}: {other:?}", lease.scope),
    }
}
