//! Entries that stay in an index for too long: a process died, or a message was lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::try_join_all;
use swirl_model::ids::ScopeRef;
use swirl_ports::Result;

use crate::Redis;
use crate::keys::Span;
use crate::record::read_scope_ref;
use crate::script::{Lazy, Script};

static DUE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/due.lua")));
static FREE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/free.lua")));

/// The minimum number of members that are requested from each shard at once.
const AT_LEAST: usize = 16;

/// The shard that the next search for scopes begins with: if the first shards always fill the limit, the others have
/// their turn, too.
static BEGINS: AtomicUsize = AtomicUsize::new(0);

/// The shard that the next search of the other indexes begins with.
static OTHER_BEGINS: AtomicUsize = AtomicUsize::new(0);

/// A scope that should be running.
pub(crate) struct Overdue {
    pub scope: ScopeRef,
    pub workflow: String,
}

impl Overdue {
    /// Those that are returned if the workflows are to have so many at most.
    pub fn of_each(all: Vec<Overdue>, most: usize) -> Vec<ScopeRef> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let few = all.into_iter().filter_map(|found| {
            let count = counts.entry(found.workflow).or_default();
            *count += 1;
            (*count <= most).then_some(found.scope)
        });
        few.collect()
    }
}

impl Redis {
    /// Members of an index of our shards that have been there for longer than the grace time. Other shards come first
    /// each time.
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

    /// Our shards, and how many members are requested from each: found members are put off, so they must
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

    /// Scopes of our shards that should be running, and that no process holds.
    pub(crate) async fn overdue_scopes(&self, limit: usize) -> Result<Vec<Overdue>> {
        let (mut shards, each) = self.divided(limit);
        let at_once = limit.div_ceil(each.max(1)).max(1);
        let begin = BEGINS.fetch_add(at_once, Ordering::Relaxed) % shards.len().max(1);
        shards.rotate_left(begin);
        let mut found = Vec::new();
        for shards in shards.chunks(at_once) {
            let pages = shards.iter().map(|shard| self.free_in(*shard, each));
            found.extend(try_join_all(pages).await?.into_iter().flatten());
            // More would be put off without being returned.
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
            let scope = scopes.get(at)?.clone();
            Some(Overdue { scope, workflow })
        });
        Ok(free.collect())
    }
}
