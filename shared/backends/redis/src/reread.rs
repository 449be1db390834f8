//! Reads the stored state of a scope for a commit, because the commit needs a part of it that isn't known, or because
//! something has changed since it was read. It doesn't matter who holds the scope, since the plan decides.

use redis::Cmd;
use swirl_commit::{CommitParts, ForkCommand, Numbers, OwnFork, is_over, kib};
use swirl_model::instance::Status;
use swirl_ports::{Lease, Result};

use crate::Redis;
use crate::connect::damaged;
use crate::lazy::{Item, enclosing_forks};
use crate::numbers::decode;
use crate::record::read_status;
use crate::reply::unpack;
use crate::snapshot::{self, Reread, Snapshot};

/// Fields of the instance, and prefixes of fields of the scope.
const FIELDS: [&str; 11] = ["s", "p", "z", "at", "k", "m:", "l:", "q:", "t:", "x:", "F:"];

/// The number of results that are read at once.
const PAGE: u32 = 200;

impl Redis {
    /// Returns `None` if there is no such instance.
    pub(crate) async fn read_again(
        &self,
        lease: &Lease,
        parts: &CommitParts<'_>,
    ) -> Result<Option<Snapshot>> {
        let name = lease.scope.scope.as_str();
        let key = self.keys().hash_of(&lease.scope.instance);
        let around = enclosing_forks(name);
        let changed = parts.changed_forks();
        let mut read = Cmd::new();
        read.arg("HMGET").arg(&key);
        for field in FIELDS {
            match field.ends_with(':') {
                true => read.arg(format!("{field}{name}")),
                false => read.arg(field),
            };
        }
        for (parent, fork, _) in &around {
            read.arg(format!("g:{fork}")).arg(format!("m:{parent}"));
        }
        for fork in &changed {
            read.arg(format!("g:{name}.{fork}"));
        }
        let found: Vec<Option<Vec<u8>>> = self.query(read).await?;
        let mut found = found.into_iter();
        let mut next = || found.next().flatten();
        let what = lease.scope.to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| damaged(&what, error));
        let Some(status) = next() else {
            return Ok(None);
        };
        let status = read_status(&text(status)?)?;
        let (suspended, size, attributes, children) = (next(), next(), next(), next());
        let (mark, held, inbox, timers) = (next(), next(), next(), next());
        let seen = next().map(text).transpose()?;
        let forks = next().map(text).transpose()?;
        let size: Option<usize> = match size {
            Some(size) => {
                let size = text(size)?.parse();
                Some(size.map_err(|_| damaged(&what, "the size isn't a number"))?)
            }
            None => None,
        };
        let numbers = |text: Option<Vec<u8>>| -> Result<Option<Numbers>> {
            text.map(|text| decode(&text, &what)).transpose()
        };
        let mut forks_around = Vec::with_capacity(around.len());
        for _ in &around {
            forks_around.push((numbers(next())?, next()));
        }
        let is_closed = is_closed(mark.as_deref(), &forks_around, status);
        let (fork, parent) = forks_around.into_iter().next().unwrap_or_default();
        let is_orphan = parent.is_none_or(|marks| marks.contains(&b'e'));
        let items: Vec<Item> = match &inbox {
            Some(inbox) => unpack(inbox, &what)?,
            None => Vec::new(),
        };
        let (mut own_forks, mut fork_texts) = (Vec::new(), Vec::new());
        for number in changed {
            if let Some(text) = next() {
                own_forks.push(OwnFork {
                    fork: number,
                    numbers: decode(&text, &what)?,
                    base_kib: 0,
                    errors: Vec::new(),
                });
                fork_texts.push(text);
            }
        }

        let mut lengths = vec![format!("r:{name}"), format!("b:{name}")];
        let bases = own_forks.iter().map(|own| own.fork);
        lengths.extend(bases.map(|fork| format!("f:{name}.{fork}")));
        let own = lengths.len();
        let numbers_of_items = items.iter().map(|(number, ..)| number);
        lengths.extend(numbers_of_items.map(|number| format!("i:{name}:{number}")));
        let lengths = lengths.iter().map(|field| {
            let mut length = Cmd::new();
            length.arg("HSTRLEN").arg(&key).arg(field);
            length
        });
        let lengths: Vec<usize> = self.read_all(&lengths.collect::<Vec<_>>()).await?;
        // An instance without a size has no part larger than a KiB.
        let kib_at = |at: usize| match size {
            Some(_) => lengths.get(at).map_or(0, |bytes| kib(*bytes)),
            None => 0,
        };
        for (at, fork) in own_forks.iter_mut().enumerate() {
            fork.base_kib = kib_at(2 + at);
        }
        let items = items.into_iter().enumerate();
        let items = items.map(|(at, (number, id, kind, handed_to))| snapshot::Item {
            // The results of branches count where they are stored.
            kib: match id.starts_with("fork-") {
                true => 0,
                false => kib_at(own + at),
            },
            number,
            id,
            kind,
            handed_to,
        });
        let items = items.collect();
        let has_reported = lengths.get(1).is_some_and(|bytes| *bytes > 0);
        let index = around.first().map(|(_, _, index)| *index);
        let can_begin = fork.as_ref().zip(index);
        let is_unborn = mark.is_none()
            && !has_reported
            && can_begin.is_some_and(|(fork, index)| !fork.is_closed && index < fork.open);
        for command in &parts.forks {
            let ForkCommand::Revive {
                fork,
                index,
                others,
                ..
            } = *command
            else {
                continue;
            };
            let own = own_forks.iter_mut().find(|own| own.fork == fork);
            if let Some(own) = own.filter(|own| own.numbers.failed > 0) {
                let branches = match others {
                    true => 0..own.numbers.open,
                    false => index..index + 1,
                };
                self.read_errors(&key, name, own, branches).await?;
            }
        }
        let held = held.map(text).transpose()?;
        let has_expired = match &held {
            Some(held) if !lease.is_taken() => self.has_expired(held).await?,
            _ => false,
        };
        let reread = Reread {
            status,
            is_suspended: suspended.is_some(),
            is_closed,
            is_unborn,
            has_reported,
            fork,
            is_orphan,
            has_expired,
            size: size.unwrap_or_default(),
            children,
        };
        Ok(Some(Snapshot {
            recorded: mark.is_some(),
            goes: mark.as_ref().is_some_and(|text| text.contains(&b'g')),
            mark,
            lease: held,
            inbox,
            items: Some(items),
            seen: Some(seen),
            forks,
            timers: Some(timers),
            attributes: Some(attributes.map(text).transpose()?.unwrap_or_default()),
            record: lengths.first().copied().unwrap_or_default(),
            own_forks,
            fork_texts,
            completes: false,
            header: None,
            reread: Some(Box::new(reread)),
            creation: None,
        }))
    }

    /// Reads which of these branches failed. Results change only together with the numbers of their fork, which were
    /// read before.
    async fn read_errors(
        &self,
        key: &str,
        parent: &str,
        own: &mut OwnFork,
        branches: std::ops::Range<u32>,
    ) -> Result<()> {
        let name = format!("{parent}.{}", own.fork);
        let mut first = branches.start;
        while first < branches.end {
            let last = branches.end.min(first + PAGE);
            let mut read = Cmd::new();
            read.arg("HMGET").arg(key);
            for index in first..last {
                read.arg(format!("b:{name}.{index}"));
            }
            let found: Vec<Option<Vec<u8>>> = self.query(read).await?;
            for (index, result) in (first..).zip(found) {
                let error = result.filter(|result| result.starts_with(b"{\"Failed\""));
                if let Some(error) = error
                    && own.errors.iter().all(|(known, _)| *known != index)
                {
                    own.errors.push((index, error.len()));
                }
            }
            first = last;
        }
        Ok(())
    }

    /// Whether a lease is over, by the clock of Redis.
    async fn has_expired(&self, held: &str) -> Result<bool> {
        let now: (u64, u64) = self.query(redis::cmd("TIME")).await?;
        let now_ms = now.0 * 1_000 + now.1 / 1_000;
        let until = held.split(' ').nth(1).and_then(|until| until.parse().ok());
        Ok(until.is_some_and(|until: u64| until <= now_ms))
    }
}

/// `around`: the forks that enclose the scope, innermost first, each with the marks of its parent. A scope that was
/// detached continues in any case.
fn is_closed(
    mark: Option<&[u8]>,
    around: &[(Option<Numbers>, Option<Vec<u8>>)],
    status: Status,
) -> bool {
    let is_detached = |marks: Option<&[u8]>| marks.is_some_and(|marks| marks.contains(&b'd'));
    if is_detached(mark) {
        return false;
    }
    for (fork, parent) in around {
        if fork.as_ref().is_none_or(|fork| fork.is_closed) {
            return true;
        }
        if is_detached(parent.as_deref()) {
            return false;
        }
    }
    is_over(status)
}
