//! Entries that stay in an index for too long because a process died or a message was lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::try_join_all;
use redis::cmd;
use swirl_model::ids::ScopeRef;
use swirl_ports::{LateScope, Result};

use crate::Redis;
use crate::keys::Span;
use crate::record::read_scope_ref;
use crate::script::{Lazy, Script};

static DUE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/due.lua")));
static FREE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/free.lua")));

/// The minimum number of members that are requested from each shard at once.
const AT_LEAST: usize = 16;

/// The shard with which the next search for scopes begins. It changes, so that all shards get their turn even if the
/// first ones always fill the limit.
static BEGINS: AtomicUsize = AtomicUsize::new(0);

/// The shard with which the next search of the other indexes begins.
static OTHER_BEGINS: AtomicUsize = AtomicUsize::new(0);

/// A scope that should be running.
struct Overdue {
    shard: u16,
    member: String,
    scope: ScopeRef,
    workflow: String,
}

impl Redis {
    /// Members of an index that have been there for longer than the grace time, from the shards of this process. Each
    /// search begins with other shards.
    pub(crate) async fn overdue(
        &self,
        index: &str,
        limit: usize,
    ) -> Result<Vec<(u16, Vec<String>)>> {
        let (mut shards, each) = self.divided(limit);
        let begin = OTHER_BEGINS.fetch_add(1, Ordering::Relaxed) % shards.len().max(1);
        shards.rotate_left(begin);
        let pages = shards.into_iter().map(async |shard| {
            let members = self.overdue_in(shard, index, each).await?;
            Ok::<_, swirl_ports::Error>((shard, members))
        });
        try_join_all(pages).await
    }

    /// The shards of this process, and how many members to request from each. Found members are postponed, so they must
    /// not be many more than wanted.
    fn divided(&self, limit: usize) -> (Vec<u16>, usize) {
        let shards = self.shards();
        let each = limit.div_ceil(shards.len().max(1));
        (shards, each.max(AT_LEAST).min(limit))
    }

    async fn overdue_in(&self, shard: u16, index: &str, limit: usize) -> Result<Vec<String>> {
        let options = self.options();
        let keys = [self.keys().index(shard, index)];
        let mut call = DUE.call(&keys);
        call.arg(options.grace_ms).arg(options.repeat_ms).arg(limit);
        self.run(&DUE, call).await
    }

    /// Scopes that should be running and that no process holds, from the shards of this process: at most this many of
    /// each workflow.
    ///
    /// The next search begins with scopes that were left out, but half of what it looks at in each shard are others. So
    /// a workflow with some hundred lost tasks gets all of them back soon, beside others with a hundred thousand scopes
    /// whose tasks are only waiting.
    pub(crate) async fn overdue_scopes(
        &self,
        limit: usize,
        of_each: usize,
    ) -> Result<Vec<LateScope>> {
        let mut of_workflows: HashMap<String, Vec<Overdue>> = HashMap::new();
        for found in self.free(limit).await? {
            let of_workflow = of_workflows.entry(found.workflow.clone()).or_default();
            of_workflow.push(found);
        }
        let has_more = |of_workflow: &&Vec<Overdue>| of_workflow.len() > of_each;
        let with_more = of_workflows.values().filter(has_more).count();
        let (_, each) = self.divided(limit);
        let again = (each / 2 / with_more.max(1)).max(1);
        let (mut found, mut left_out) = (Vec::new(), BTreeMap::<u16, Vec<String>>::new());
        for (workflow, of_workflow) in of_workflows {
            let workflow: Option<Arc<str>> = match workflow.is_empty() {
                true => None,
                false => Some(workflow.into()),
            };
            let mut in_shards: HashMap<u16, usize> = HashMap::new();
            for (count, overdue) in of_workflow.into_iter().enumerate() {
                if count < of_each && found.len() < limit {
                    found.push(LateScope {
                        scope: overdue.scope,
                        workflow: workflow.clone(),
                    });
                    continue;
                }
                let in_shard = in_shards.entry(overdue.shard).or_default();
                *in_shard += 1;
                if *in_shard <= again {
                    left_out
                        .entry(overdue.shard)
                        .or_default()
                        .push(overdue.member);
                }
            }
        }
        let left_out = left_out
            .iter()
            .map(|(shard, members)| self.first_again(*shard, "ready", members));
        try_join_all(left_out).await?;
        Ok(found)
    }

    /// The next search begins with these members of an index, if they are still in it.
    pub(crate) async fn first_again(
        &self,
        shard: u16,
        index: &str,
        members: &[String],
    ) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        let mut add = cmd("ZADD");
        add.arg(self.keys().index(shard, index)).arg("XX");
        for member in members {
            add.arg(0).arg(member);
        }
        self.query(add).await
    }

    /// Scopes that should be running and that no process holds.
    async fn free(&self, limit: usize) -> Result<Vec<Overdue>> {
        let (mut shards, each) = self.divided(limit);
        let at_once = limit.div_ceil(each.max(1)).max(1);
        let by = if at_once < shards.len() { at_once } else { 1 };
        let begin = BEGINS.fetch_add(by, Ordering::Relaxed) % shards.len().max(1);
        shards.rotate_left(begin);
        let mut found = Vec::new();
        for shards in shards.chunks(at_once) {
            let pages = shards.iter().map(|shard| self.free_in(*shard, each));
            found.extend(try_join_all(pages).await?.into_iter().flatten());
            // More would be postponed without being returned.
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    async fn free_in(&self, shard: u16, limit: usize) -> Result<Vec<Overdue>> {
        let members = self.overdue_in(shard, "ready", limit).await?;
        if members.is_empty() {
            return Ok(Vec::new());
        }
        let scopes = members.iter().map(|member| read_scope_ref(member));
        let scopes = scopes.collect::<Result<Vec<_>>>()?;
        let mut keys = vec![self.keys().index(shard, "ready")];
        for scope in &scopes {
            keys.extend(
                self.keys()
                    .of(&scope.instance, Span::Ready)
                    .into_iter()
                    .next(),
            );
        }
        let mut call = FREE.call(&keys);
        for (member, scope) in members.iter().zip(&scopes) {
            call.arg(member).arg(scope.scope.as_str());
        }
        let free: Vec<(usize, String)> = self.run(&FREE, call).await?;
        let free = free.into_iter().filter_map(|(at, workflow)| {
            Some(Overdue {
                shard,
                member: members.get(at)?.clone(),
                scope: scopes.get(at)?.clone(),
                workflow,
            })
        });
        Ok(free.collect())
    }
}
