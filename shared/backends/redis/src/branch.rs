//! Records of branches. The data of a branch is stored as the difference from its fork's data, which may contain the
//! list that is iterated over. If each record had a copy, the list would be written once for each of its items.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::difference::Difference;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Header;
use swirl_model::scope::{Fork, Scope};
use swirl_ports::{Lease, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::fork_bases::ForkBase;
use crate::record::encode;
use crate::reply::{Reply, json};
use crate::unread::Unread;

/// Differences are not worthwhile if the fork's origin is smaller than this.
const WORTH: usize = 1_024;

/// The creation time of the fork, the difference from its data, and the scope without data. It is stored as an array,
/// while full scopes are objects.
pub(crate) type Differing = (String, Difference, Scope);

/// Whether the record contains only a difference.
pub(crate) fn differs(record: &[u8]) -> bool {
    record.first() == Some(&b'[')
}

/// The fork of a branch, from the scope's name.
pub(crate) fn fork_of(scope: &str) -> Option<&str> {
    let (fork, _) = scope.rsplit_once('.')?;
    fork.contains('.').then_some(fork)
}

/// `fork`: the fork that the scope is a branch of, with its stamp; needed if the record [`differs`].
pub(crate) fn read_scope(record: &[u8], what: &str, fork: Option<(&str, &Fork)>) -> Result<Scope> {
    if !differs(record) {
        return json(record, what);
    }
    let (stamp, difference, mut scope): Differing = json(record, what)?;
    let (_, fork) = fork
        .filter(|(made, _)| *made == stamp)
        .ok_or_else(|| damaged(what, "the fork of this branch is missing"))?;
    let data = difference.apply(&fork.data);
    scope.data = data.map_err(|error| damaged(what, error))?;
    Ok(scope)
}

/// Reads records of an instance, followed by name, origin and numbers of each fork that they need.
pub(crate) fn read_scopes(
    mut records: Reply,
    mut forks: Reply,
    id: &InstanceId,
) -> Result<Vec<Scope>> {
    let what = format!("a scope of {id}");
    let mut fork_bases: HashMap<String, (String, Fork)> = HashMap::new();
    while !forks.is_empty() {
        let name = forks.text()?;
        let fork = forks.json(&format!("fork {name} of {id}"))?;
        fork_bases.insert(name, (forks.text()?, fork));
    }
    let mut scopes = Vec::new();
    while !records.is_empty() {
        let (name, record) = (records.text()?, records.bytes()?);
        let fork = fork_of(&name).and_then(|name| fork_bases.get(name));
        let fork = fork.map(|(stamp, fork)| (stamp.as_str(), fork));
        scopes.push(read_scope(&record, &what, fork)?);
    }
    Ok(scopes)
}

impl Redis {
    pub(crate) fn encode_scope(&self, scope: &Scope, lease: &Lease) -> Result<Vec<u8>> {
        let limit = self.options().record_max;
        let what = || lease.scope.to_string();
        let fork_base = fork_of(scope.id.as_str())
            .filter(|_| lease.fork_stamp > 0)
            .and_then(|fork| self.fork_bases().get(&lease.scope.instance, fork))
            .filter(|fork_base| {
                // The data of a single branch is written once in any case.
                fork_base.fork.total > 1
                    && fork_base.fork_bytes >= WORTH
                    && fork_base.stamp == lease.fork_stamp.to_string()
            });
        let Some(fork_base) = fork_base else {
            return encode(scope, what, limit);
        };
        let Some((difference, rest)) = Difference::of_scope(&fork_base.fork.data, scope) else {
            return encode(scope, what, limit);
        };
        // The names of members may make it larger than the whole value.
        encode(&(fork_base.stamp, difference, rest), what, limit)
            .or_else(|_| encode(scope, what, limit))
    }

    /// The cached origin of the fork that a scope is a branch of. If it isn't cached, it is read and cached.
    pub(crate) fn fork_base(
        &self,
        scope: &ScopeRef,
        stamp: String,
        header: &Arc<Header>,
        json_of_fork: &[u8],
    ) -> Result<Arc<Fork>> {
        let name = fork_of(scope.scope.as_str()).unwrap_or_default();
        if let Some(known) = self.fork_bases().get(&scope.instance, name)
            && known.stamp == stamp
        {
            return Ok(known.fork);
        }
        let fork: Arc<Fork> = json::<Fork>(json_of_fork, &scope.to_string())?.into();
        let fork_base = ForkBase {
            stamp,
            header: header.clone(),
            fork,
            unread: Unread::default(),
            fork_bytes: json_of_fork.len(),
            bytes: json_of_fork.len(),
        };
        Ok(self
            .fork_bases()
            .share(&scope.instance, name, fork_base)
            .fork)
    }
}
