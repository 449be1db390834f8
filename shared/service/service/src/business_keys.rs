//! Instances by their business keys (docs/language.md#decision-101). Two running instances of a workflow have different
//! keys; one that has ended releases its key.
//!
//! A key is taken before its instance is created, and counts as in use from then on.

use swirl_model::ids::InstanceId;
use swirl_model::instance::{Header, Status};
use swirl_model::time::Timestamp;
use swirl_ports::{InstanceKey, KeyHolder};

use crate::{Error, Service};

/// The time that the holder of a key may need to create its instance, or to continue it.
const GRACE_MS: i64 = 60_000;
/// The number of tries for a key that others take at the same moment.
const TRIES: usize = 8;

/// Separates a workflow from a key. Both may contain it.
const BETWEEN: char = '/';
/// How many of a name's separators are tried.
const BETWEEN_MAX: usize = 16;

/// The instance that runs under a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InUse {
    pub key: String,
    pub by: InstanceId,
}

impl Service {
    /// Returns the instance with this name: an id, or workflow and key with a slash between them. That means the
    /// instance that took the business key last, or else the one that was started with this idempotency key. If several
    /// slashes could separate them, the first one for which there is an instance does.
    pub async fn called(&self, name: &str) -> Result<InstanceId, Error> {
        for (at, _) in name.match_indices(BETWEEN).take(BETWEEN_MAX) {
            let workflow = &name[..at];
            let key = InstanceKey {
                workflow: workflow.into(),
                key: name[at + 1..].into(),
            };
            if let Some(holder) = self.store.key_holder(&key).await? {
                return Ok(holder.instance);
            }
            let started = self.started_with(workflow, &key.key);
            if self.store.instance(&started).await?.is_some() {
                return Ok(started);
            }
        }
        Ok(InstanceId::new(name))
    }

    /// Takes the key of an instance that will be created.
    pub(crate) async fn take_key(&self, header: &Header) -> Result<Result<(), InUse>, Error> {
        let Some(key) = InstanceKey::of(header) else {
            return Ok(Ok(()));
        };
        // A repeated creation finds its instance again, even if another instance has the key by now.
        if self.store.instance(&header.id).await?.is_some() {
            return Ok(Ok(()));
        }
        self.take(&key, header).await
    }

    /// Takes the key of a failed instance that will continue.
    pub(crate) async fn take_key_again(&self, header: &Header) -> Result<Result<(), InUse>, Error> {
        match InstanceKey::of(header) {
            Some(key) => self.take(&key, header).await,
            None => Ok(Ok(())),
        }
    }

    /// The running instance that has the key of a failed one, so that the failed one cannot continue.
    pub(crate) async fn key_in_use(&self, header: &Header) -> Result<Option<InUse>, Error> {
        let Some(key) = InstanceKey::of(header) else {
            return Ok(None);
        };
        let found = self.store.key_holder(&key).await?;
        self.in_use(&key, header, found.as_ref(), self.clock.now())
            .await
    }

    /// Whether another running instance than that of `header` holds the key.
    async fn in_use(
        &self,
        key: &InstanceKey,
        header: &Header,
        found: Option<&KeyHolder>,
        now: Timestamp,
    ) -> Result<Option<InUse>, Error> {
        let Some(holder) = found else {
            return Ok(None);
        };
        // An instance that continues another takes its key from it.
        let own = holder.instance == header.id
            || header.continued_from.as_ref() == Some(&holder.instance);
        if own || !self.is_in_use(holder, now).await? {
            return Ok(None);
        }
        Ok(Some(InUse {
            key: key.key.to_string(),
            by: holder.instance.clone(),
        }))
    }

    async fn take(&self, key: &InstanceKey, header: &Header) -> Result<Result<(), InUse>, Error> {
        let now = self.clock.now();
        let to = KeyHolder {
            instance: header.id.clone(),
            since: now,
        };
        for _ in 0..TRIES {
            let found = self.store.key_holder(key).await?;
            if let Some(in_use) = self.in_use(key, header, found.as_ref(), now).await? {
                return Ok(Err(in_use));
            }
            if self.store.take_key(key, &to, found.as_ref()).await? {
                return Ok(Ok(()));
            }
        }
        let message = format!("the key '{}' is being taken by others", key.key);
        Err(swirl_ports::Error::Unavailable(message).into())
    }

    async fn is_in_use(&self, holder: &KeyHolder, now: Timestamp) -> Result<bool, Error> {
        let recent = now.0.saturating_sub(holder.since.0) < GRACE_MS;
        let Some(instance) = self.store.instance(&holder.instance).await? else {
            return Ok(recent);
        };
        let state = &instance.state;
        // An operator is letting it continue just now.
        let revived = state.status == Status::Faulted
            && recent
            && state.ended_at.is_some_and(|at| at < holder.since);
        Ok(!state.status.ended() || revived)
    }
}
