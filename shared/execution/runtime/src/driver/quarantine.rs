//! Suspends instances that cannot be driven, for an operator. Otherwise the reconciler would report them for ever. An
//! entry in the history gives the reason before the suspension.

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Header;
use swirl_model::redact::Redactor;
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, Commit, Committed, Error, Held};

use super::Driver;

/// The number of attempts to get a root scope that another process holds, and the pause between them.
const TRIES: usize = 5;
const PAUSE_MS: u64 = 200;
/// Enough time to write the entry.
const LEASE_MS: u64 = 10_000;

impl Driver {
    /// Suspends the instance of a scope, with the reason in its history.
    pub async fn quarantine(&self, scope: &ScopeRef, why: &crate::Error) {
        match note(self, scope, why).await {
            Ok(true) => {}
            Ok(false) => tracing::warn!("the history doesn't say why: the instance is unavailable"),
            Err(error) => tracing::warn!(%error, "the history doesn't say why"),
        }
        let instance = &scope.instance;
        match self.store.suspend(instance, true, None).await {
            Ok(Some(_)) => tracing::error!(
                "the instance cannot be executed and was suspended: fix the cause, then continue it with \
                 'swirl resume {instance}'"
            ),
            Ok(None) => {
                tracing::warn!(
                    "a task cannot be executed and is dropped: its instance is no longer running"
                )
            }
            Err(error) => {
                tracing::error!(%error, "the instance can be neither executed nor suspended")
            }
        }
    }
}

/// Adds the entry through the root scope, which every instance has. Returns false if the root has ended or another
/// process holds it.
async fn note(driver: &Driver, scope: &ScopeRef, why: &crate::Error) -> Result<bool, Error> {
    let root = ScopeRef::root(scope.instance.clone());
    for _ in 0..TRIES {
        match driver.store.acquire(&root, LEASE_MS).await? {
            Acquired::Held(held) => {
                let lease = held.lease.clone();
                let noted = commit(driver, *held, scope, why).await;
                if !matches!(noted, Ok(Some(true))) {
                    // Processing the inbox is left for when an operator resumes the instance.
                    driver.give_up(&lease).await;
                }
                return noted.map(|noted| noted.is_some());
            }
            Acquired::Gone => return Ok(false),
            Acquired::Busy => {
                let until = driver.clock.now().plus_ms(PAUSE_MS);
                driver.clock.sleep_until(until).await;
            }
        }
    }
    Ok(false)
}

/// Returns whether the commit released the lease; `None` if the commit had no effect.
async fn commit(
    driver: &Driver,
    held: Held,
    scope: &ScopeRef,
    why: &crate::Error,
) -> Result<Option<bool>, Error> {
    let Record::Scope(root) = held.record else {
        return Ok(None);
    };
    if held.closed {
        return Ok(None);
    }
    let at = driver.clock.now();
    let reason = match why {
        // This scope refers to nothing in the definition, and reading the definition may crash the process.
        crate::Error::Attempts { .. } => why.to_string(),
        _ => redacted(driver, &held.header, &why.to_string()).await,
    };
    let entry = HistoryEntry {
        data: None,
        at,
        scope: scope.scope.clone(),
        event: Event::GivenUp { reason },
        data_until: None,
    };
    let commit = Commit {
        lease: held.lease,
        scope: root,
        consumed: Vec::new(),
        refused: Vec::new(),
        history: vec![entry],
        commands: Vec::new(),
        at,
        require_unchanged_inbox: false,
        fits: true,
        release: true,
        lease_ms: LEASE_MS,
    };
    match driver.store.commit(commit).await? {
        Committed::Done { released, .. } => Ok(Some(released)),
        Committed::InboxChanged | Committed::Full(_) | Committed::Refused => Ok(None),
    }
}

/// Removes the definition's secrets from the reason, if the definition can be read.
async fn redacted(driver: &Driver, header: &Header, reason: &str) -> String {
    let Ok(definition) = driver.registry.get(&header.definition).await else {
        return reason.to_owned();
    };
    let secrets = driver.secrets.of(&definition.workflow).await;
    Redactor::of(&secrets).text(reason).into_owned()
}
