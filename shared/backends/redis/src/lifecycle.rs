//! Suspending, notes in histories, and the removal of ended instances.

use redis::{Cmd, Value};
use swirl_model::event::{Command, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::{OutboxEntry, Removed, Result, Suspended};

use crate::Redis;
use crate::attributes;
use crate::following;
use crate::keys::Span;
use crate::record::encode;
use crate::reply::Reply;
use crate::retention;
use crate::script::{Lazy, Script};

const SCOPES: &str = include_str!("lua/scopes.lua");
const LISTING: &str = include_str!("lua/listing.lua");

static SUSPEND: Lazy =
    Lazy::new(|| Script::of_instance(&[SCOPES, include_str!("lua/suspend.lua")]).freeing());
static NOTE: Lazy = Lazy::new(|| {
    Script::of_instance(&[include_str!("lua/lines.lua"), include_str!("lua/note.lua")])
});
static REMOVE: Lazy =
    Lazy::new(|| Script::of_instance(&[LISTING, include_str!("lua/remove.lua")]).freeing());
static CLEAR: Lazy = Lazy::new(|| Script::alone(include_str!("lua/clear.lua")).freeing());
static ATTEMPTS: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/attempts.lua")));

pub(crate) fn freeing() -> [&'static Script; 3] {
    [&SUSPEND, &REMOVE, &CLEAR]
}

impl Redis {
    pub(crate) async fn suspend_instance(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        let mut keys = self.keys().of(id, Span::All);
        keys.push(self.keys().index(self.keys().shard(id), "suspended"));
        let command = Command::suspended(on, with);
        let mut call = self.call_instance(&SUSPEND, &keys, id, None);
        call.arg(u8::from(on));
        let limit = self.options().record_max;
        call.arg(encode(&command, || "an effect".to_owned(), limit)?);
        let answer = self.run(&SUSPEND, call).await?;
        let Some(mut parts) = Reply::optional(answer)? else {
            return Ok(None);
        };
        let entry = OutboxEntry {
            instance: id.clone(),
            id: parts.number()?,
            command,
        };
        let misses: u8 = parts.number()?;
        let misses = misses == 1;
        let mut wake = self.read_scopes(id, parts.value()?)?;
        if misses && let Err(error) = self.reindex(id, &mut wake).await {
            tracing::debug!(instance = %id, %error, "the reconciler searches kept events for it");
        }
        Ok(Some(Suspended {
            wake,
            outbox: vec![entry],
        }))
    }

    /// Adds an entry to the history without a commit.
    pub(crate) async fn note_history(&self, id: &InstanceId, entry: &HistoryEntry) -> Result<bool> {
        let keys = self.keys_of_lines(id);
        let mut call = self.call_instance(&NOTE, &keys, id, None);
        call.arg(self.options().history_max.max(1));
        let limit = self.options().record_max;
        crate::history::add(&mut call, std::slice::from_ref(entry), id, limit)?;
        let added: i64 = self.run(&NOTE, call).await?;
        Ok(added == 1)
    }

    /// The keys of a script that adds to the history without a commit.
    pub(crate) fn keys_of_lines(&self, id: &InstanceId) -> Vec<String> {
        let mut keys = self.keys().of(id, Span::All);
        if self.follows() {
            keys.push(self.keys().index(self.keys().shard(id), following::INDEX));
        }
        keys
    }

    pub(crate) async fn count_attempts(&self, scope: &ScopeRef, change: &str) -> Result<u32> {
        let keys = self.keys().of(&scope.instance, Span::Ready);
        let mut call = ATTEMPTS.call(&keys[..1]);
        call.arg(scope.scope.as_str()).arg(change);
        self.run(&ATTEMPTS, call).await
    }

    /// Removes instances without leftovers, which are most, and returns the positions of the others.
    pub(crate) async fn clear(
        &self,
        shard: u16,
        ended: &[(InstanceId, i64)],
    ) -> Result<Vec<usize>> {
        let index = |name: &str| self.keys().index(shard, name);
        let mut keys = ["ended", "dirty", "ready", "outbox", "keys"]
            .map(index)
            .to_vec();
        keys.extend(self.keys().listings(shard));
        keys.push(index(attributes::INDEX));
        keys.push(index(following::INDEX));
        for (id, _) in ended {
            keys.extend(["i", "e", "got", "h"].map(|kind| index(&format!("{kind}:{id}"))));
        }
        let mut call = CLEAR.call(&keys);
        call.arg(u8::from(self.follows()));
        for (id, at) in ended {
            call.arg(id.as_str()).arg(at);
        }
        let left: Vec<usize> = self.run(&CLEAR, call).await?;
        Ok(left
            .into_iter()
            .filter_map(|place| place.checked_sub(1))
            .collect())
    }

    /// See [`ExecutionStore::remove`].
    pub(crate) async fn remove_instance(&self, id: &InstanceId) -> Result<Removed> {
        let mut read = Cmd::new();
        read.arg("HMGET").arg(self.keys().hash_of(id));
        read.arg("s").arg("end").arg("kp");
        type Fields = (Option<String>, Option<i64>, Option<String>);
        let (status, ended, kept): Fields = self.query(read).await?;
        let at = match (status.as_deref(), ended) {
            (None, _) => return Ok(Removed::Unknown),
            (Some("r"), _) | (_, None) => return Ok(Removed::Running),
            (Some(status), Some(at)) => retention::of_ended(status, at, kept.as_deref()),
        };
        // The function refuses an instance whose waits have just changed.
        self.reindex(id, &mut Vec::new()).await?;
        let shard = self.keys().shard(id);
        if !self.take_away(shard, id, at, self.follows()).await? {
            return Ok(Removed::Busy);
        }
        // The notes of the waits remain if the instance failed.
        self.reindex(id, &mut Vec::new()).await?;
        Ok(Removed::Done)
    }

    /// Removes an instance. Returns false if it still has something to do, or if its position in the index is later
    /// than this one. `holds`: the instance stays while its history has unread entries.
    pub(crate) async fn take_away(
        &self,
        shard: u16,
        id: &InstanceId,
        at: i64,
        holds: bool,
    ) -> Result<bool> {
        let mut keys = self.keys().of(id, Span::All);
        keys.push(self.keys().index(shard, "keys"));
        keys.extend(self.keys().listings(shard));
        keys.push(self.keys().index(shard, "suspended"));
        keys.push(self.keys().index(shard, attributes::INDEX));
        keys.push(self.keys().index(shard, following::INDEX));
        let mut call = self.call_instance(&REMOVE, &keys, id, None);
        call.arg(at).arg(u8::from(holds));
        let mut done = self.run(&REMOVE, call.clone()).await?;
        if let Value::BulkString(key) = &done {
            self.give_up_key(&String::from_utf8_lossy(key), id).await?;
            call.arg(1);
            done = self.run(&REMOVE, call).await?;
        }
        if done == Value::Int(2) {
            self.lose(id);
        }
        let is_gone = matches!(done, Value::Int(1 | 2));
        if is_gone {
            self.forget_recorded(shard, &[id]).await?;
        }
        Ok(is_gone)
    }
}
