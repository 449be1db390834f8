//! Reads the stored state of a scope again for a commit, because the commit needs a part of it that isn't known, or
//! because something has changed since it was read. It doesn't matter who holds the scope, since the plan decides.

use redis::Cmd;
use swirl_ports::{Lease, Result};

use crate::Redis;
use crate::commit::kib;
use crate::commit_parts::CommitParts;
use crate::connect::damaged;
use crate::lazy::Item;
use crate::reply::unpack;
use crate::snapshot::{self, Joining, Snapshot};

/// Fields of the instance, and prefixes of fields of the scope.
const FIELDS: [&str; 10] = ["s", "p", "z", "at", "m:", "l:", "q:", "t:", "x:", "F:"];

impl Redis {
    /// Returns `None` if the general function must decide, because the instance isn't running.
    pub(crate) async fn read_again(
        &self,
        lease: &Lease,
        parts: &CommitParts<'_>,
    ) -> Result<Option<Snapshot>> {
        let name = lease.scope.scope.as_str();
        let key = self.keys().hash_of(&lease.scope.instance);
        let mut read = Cmd::new();
        read.arg("HMGET").arg(&key);
        for field in FIELDS {
            if field.ends_with(':') {
                read.arg(format!("{field}{name}"));
            } else {
                read.arg(field);
            }
        }
        let fork = parts
            .close
            .map(|number| (number, format!("{name}.{number}")));
        if let Some((_, fork)) = &fork {
            read.arg(format!("g:{fork}"));
        }
        let found: Vec<Option<Vec<u8>>> = self.query(read).await?;
        let mut found = found.into_iter();
        let mut next = || found.next().flatten();
        let (status, suspended, size, attributes) = (next(), next(), next(), next());
        if status.as_deref() != Some(b"r") || suspended.is_some() {
            return Ok(None);
        }
        let what = lease.scope.to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| damaged(&what, error));
        let (mark, held, inbox, timers) = (next(), next(), next(), next());
        let seen = next().map(text).transpose()?;
        let forks = next().map(text).transpose()?;
        let numbers = next();
        let items: Vec<Item> = match &inbox {
            Some(inbox) => unpack(inbox, &what)?,
            None => Vec::new(),
        };

        let mut lengths = vec![format!("r:{name}")];
        if let Some((_, fork)) = &fork {
            lengths.push(format!("f:{fork}"));
        }
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
        let joining = match (fork, numbers) {
            (Some((fork, _)), Some(text)) => Some(Joining {
                fork,
                numbers: unpack(&text, &what)?,
                text,
                fork_base_kib: kib_at(1),
            }),
            _ => None,
        };
        Ok(Some(Snapshot {
            recorded: mark.is_some(),
            goes: mark.as_ref().is_some_and(|text| text.contains(&b'g')),
            mark,
            lease: held.map(text).transpose()?,
            inbox,
            items: Some(items),
            seen: Some(seen),
            forks,
            timers: Some(timers),
            attributes: Some(attributes.map(text).transpose()?.unwrap_or_default()),
            record: lengths.first().copied().unwrap_or_default(),
            joining,
            completes: false,
            header: None,
        }))
    }
}
