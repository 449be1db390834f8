//! The index of instances: their waits in buckets, and their values among those of active instances.

use futures::StreamExt;
use futures::stream;
use redis::Cmd;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::Result;

use super::early::{Candidate, PAGE};
use super::names::{BucketKeys, StartKeys, waiting_keys};
use super::waiting::{IndexEntry, Waiting};
use crate::Redis;
use crate::keys::Span;
use crate::reply::Reply;
use crate::script::{Lazy, Script};

static PLAN: Lazy = Lazy::new(|| Script::of_instance(&[include_str!("../lua/events/plan.lua")]));
static INDEXED: Lazy =
    Lazy::new(|| Script::freeing_small(include_str!("../lua/events/indexed.lua")));
static BUCKET: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/bucket.lua")]));

/// The number of concurrent calls of one operation.
pub(super) const AT_ONCE: usize = 64;
/// Each round delivers an event to the instance, or finds that another process changed the instance.
const ROUNDS: usize = 10_000;

impl Redis {
    /// Updates the index of waits for an instance that a script marked as dirty, and delivers events that arrived
    /// before the waits began.
    pub(crate) async fn reindex(
        &self,
        instance: &InstanceId,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<()> {
        let (waiting, _) = self.read_waiting(instance, "").await?;
        self.reindex_with(instance, waiting, woken).await
    }

    /// Like [`Redis::reindex`], with the mark and the fields that a script returned.
    pub(crate) async fn index_waits(
        &self,
        instance: &InstanceId,
        mark: String,
        mut fields: Reply,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<()> {
        let mut texts = Vec::new();
        while !fields.is_empty() {
            texts.push(fields.text()?);
        }
        let waiting = Waiting::read(instance, Some(mark), texts)?;
        self.reindex_with(instance, waiting, woken).await
    }

    /// Like [`Redis::reindex`], for an instance that has been read.
    pub(super) async fn reindex_with(
        &self,
        instance: &InstanceId,
        mut waiting: Waiting,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<()> {
        for _ in 0..ROUNDS {
            if waiting.mark.is_none() {
                // Another process has done it.
                return Ok(());
            }
            let index_entries = waiting.index_entries();
            let actives = waiting.actives();
            if self
                .plan(instance, &mut waiting, &index_entries, &actives)
                .await?
            {
                continue;
            }
            self.add_to_active(instance, &waiting, &actives).await?;
            let candidates = self.index_wait(instance, &waiting, &index_entries).await?;
            if let Some(after) = self
                .match_kept(instance, &waiting, candidates, woken)
                .await?
            {
                waiting = *after;
                continue;
            }
            return self
                .finish_indexing(instance, &waiting, &index_entries, &actives)
                .await;
        }
        // The instance is still dirty, so the reconciler continues.
        Ok(())
    }

    /// Plans index entries. Returns true if the instance has changed and was read again, or if its notes have changed.
    async fn plan(
        &self,
        instance: &InstanceId,
        waiting: &mut Waiting,
        index_entries: &[IndexEntry],
        actives: &[String],
    ) -> Result<bool> {
        let mut new: Vec<(String, String)> = Vec::new();
        for entry in index_entries {
            if !waiting.notes.contains_key(&entry.note) {
                let field = waiting.waits[entry.wait].field.clone();
                new.push((field, entry.note.clone()));
            }
        }
        for active in actives {
            let note = format!("a:{active}");
            if !waiting.notes.contains_key(&note) {
                new.push((String::new(), note));
            }
        }
        if new.is_empty() {
            return Ok(false);
        }
        let mut call = PLAN.call(&self.keys().of(instance, Span::Waits));
        call.arg(instance.as_str())
            .arg(self.keys().namespace())
            .arg("");
        for (field, note) in &new {
            call.arg(field).arg(note);
        }
        match self.run::<Option<String>>(&PLAN, call).await? {
            Some(mark) => {
                waiting.mark = Some(mark);
                let notes = new.into_iter().map(|(_, note)| (note, false));
                waiting.notes.extend(notes);
            }
            None => (*waiting, _) = self.read_waiting(instance, "").await?,
        }
        Ok(true)
    }

    /// Puts waits into the buckets where events search for them, and returns the events kept there.
    async fn index_wait(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        index_entries: &[IndexEntry],
    ) -> Result<Vec<Candidate>> {
        let fresh = |entry: &&IndexEntry| {
            waiting.freed.is_some() || waiting.notes.get(&entry.note) == Some(&false)
        };
        let pages = index_entries.iter().filter(fresh).map(|entry| {
            let keys = BucketKeys::new(self.keys(), &entry.bucket);
            let wait = &waiting.waits[entry.wait];
            let member = format!("{instance}/{}/{}", wait.scope, wait.wait);
            let order = wait.order.clone();
            async move {
                let args = [order, member, PAGE.to_string()];
                let all = [keys.waits, keys.kept];
                let found: Vec<(String, String)> = self.eval(&BUCKET, &all, &args).await?;
                Ok::<_, swirl_ports::Error>(Candidate::page(entry, found))
            }
        });
        let mut pages = stream::iter(pages.collect::<Vec<_>>()).buffered(AT_ONCE);
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            all.extend(page?);
        }
        Ok(all)
    }

    /// Adds the instance to the active instances with its values.
    async fn add_to_active(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        actives: &[String],
    ) -> Result<()> {
        let fresh = |active: &&String| waiting.notes.get(&format!("a:{active}")) == Some(&false);
        let additions = actives.iter().filter(fresh).map(|active| {
            // A sorted set with one member takes half the memory of a set.
            let mut cmd = redis::cmd("ZADD");
            cmd.arg(StartKeys::new(self.keys(), active).active)
                .arg(0)
                .arg(instance.as_str());
            self.query::<i64>(cmd)
        });
        futures::future::try_join_all(additions).await?;
        Ok(())
    }

    /// Removes the instance from buckets where it shouldn't be, and removes the mark if nothing has changed.
    async fn finish_indexing(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        index_entries: &[IndexEntry],
        actives: &[String],
    ) -> Result<()> {
        let mut wanted: Vec<String> = index_entries
            .iter()
            .map(|entry| entry.note.clone())
            .collect();
        wanted.extend(actives.iter().map(|active| format!("a:{active}")));
        let mut gone: Vec<&String> = waiting.notes.keys().collect();
        gone.retain(|note| !wanted.contains(note));
        let removals = gone.iter().filter_map(|note| self.removal(instance, note));
        let removals: Vec<Cmd> = removals.collect();
        let [dirty, events, _] = waiting_keys(self, instance);
        let fresh: Vec<&String> = wanted
            .iter()
            .filter(|note| waiting.notes.get(*note) == Some(&false))
            .collect();
        let mut call = INDEXED.call(&[dirty, events]);
        call.arg(instance.as_str())
            .arg(waiting.mark.as_deref().unwrap_or_default())
            .arg(waiting.freed.as_deref().unwrap_or_default())
            .arg(fresh.len());
        for note in fresh.into_iter().chain(gone) {
            call.arg(note);
        }
        // The mark is removed last. A server refuses either all commands or none, except at the moment when it becomes
        // available again; refused commands are sent again.
        self.run_after::<i64>(removals, &INDEXED, call).await?;
        Ok(())
    }

    /// The command that removes an entry.
    fn removal(&self, instance: &InstanceId, note: &str) -> Option<Cmd> {
        if let Some(active) = note.strip_prefix("a:") {
            let mut cmd = redis::cmd("ZREM");
            cmd.arg(StartKeys::new(self.keys(), active).active)
                .arg(instance.as_str());
            return Some(cmd);
        }
        let mut parts = note.strip_prefix("x:")?.splitn(2, ':');
        let (bucket, wait) = (parts.next()?, parts.next()?);
        let (scope, wait) = wait.rsplit_once(':')?;
        let mut cmd = redis::cmd("ZREM");
        cmd.arg(BucketKeys::new(self.keys(), bucket).waits)
            .arg(format!("{instance}/{scope}/{wait}"));
        Some(cmd)
    }

    /// Handles instances that a crash left dirty.
    pub(crate) async fn reindex_dirty(
        &self,
        limit: usize,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<()> {
        let grace_us = self.options().grace_ms.saturating_mul(1_000);
        let shards = self.shards();
        let reads = shards.iter().map(|shard| {
            let key = self.keys().index(*shard, "dirty");
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(key).arg(0).arg(limit.max(1) - 1).arg("WITHSCORES");
            self.query::<Vec<(String, f64)>>(cmd)
        });
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffered(AT_ONCE);
        let mut found: Vec<(String, f64)> = Vec::new();
        while let Some(page) = reads.next().await {
            found.extend(page?);
        }
        if found.is_empty() {
            return Ok(());
        }
        let time: (u64, u64) = self.query(redis::cmd("TIME")).await?;
        let now_us = time.0 * 1_000_000 + time.1;
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        for (instance, since) in found.into_iter().take(limit) {
            // The process that marked it may still be working on it.
            if now_us.saturating_sub(since as u64) >= grace_us {
                self.reindex(&InstanceId::new(instance), woken).await?;
            }
        }
        Ok(())
    }
}
