//! Reads a scope without a lease, for a turn that may end with its first commit, by one command that writes nothing.
//! The commit detects whether another process was faster.

use std::sync::Arc;

use redis::Cmd;
use swirl_commit::{Numbers, OwnFork, kib};
use swirl_model::event::Input;
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Header;
use swirl_model::scope::Fork;
use swirl_ports::execution::Record;
use swirl_ports::{Held, InboxItem, Lease, Result};

use crate::Redis;
use crate::attributes;
use crate::branch::{differs, read_scope};
use crate::connect::damaged;
use crate::expected::Expected;
use crate::fork_bases::ForkBase;
use crate::joins::{add_results, result_fields};
use crate::numbers;
use crate::reply::{json, unpack};
use crate::snapshot::{self, Snapshot};
use crate::unread::Unread;

/// The fields before those of the enclosing forks.
const OWN: [&str; 7] = ["s", "p", "m:", "l:", "q:", "t:", "r:"];

fn own_fields(scope: &str) -> impl Iterator<Item = String> {
    OWN.into_iter()
        .map(move |field| match field.ends_with(':') {
            true => format!("{field}{scope}"),
            false => field.to_owned(),
        })
}

/// The fields that [`Redis::look_at_scope`] reads of a root, before those of its inbox.
pub(crate) fn root_fields(scope: &str) -> Vec<String> {
    own_fields(scope).chain(["h".to_owned()]).collect()
}

/// An item of an inbox: number, id, kind, and the token of the lease that it was handed to.
pub(crate) type Item = (String, String, String, String);

/// The forks that enclose a scope, innermost first: parent, fork, index of the branch.
pub(crate) fn enclosing_forks(scope: &str) -> Vec<(&str, &str, u32)> {
    let mut forks = Vec::new();
    let mut rest = scope;
    while let Some((fork, index)) = rest.rsplit_once('.')
        && let Some((parent, _)) = fork.rsplit_once('.')
        && let Ok(index) = index.parse()
    {
        forks.push((parent, fork, index));
        rest = parent;
    }
    forks
}

/// Whether the scope has neither ended nor been detached. Marks: `<revision> <flags> <stamp>`.
fn is_plain(marks: &[u8]) -> bool {
    !marks.contains(&b'e') && !marks.contains(&b'd')
}

/// The time when it was written.
fn stamp(marks: &[u8]) -> u64 {
    let text = std::str::from_utf8(marks).unwrap_or_default();
    let stamp = text.rsplit(' ').next().unwrap_or_default();
    stamp.parse().unwrap_or_default()
}

/// The command that reads the stored state of a scope and of the enclosing forks, and the inputs that are expected in
/// its inbox.
fn command(
    key: &str,
    scope: &ScopeRef,
    forks: &[(&str, &str, u32)],
    with_fork_base: bool,
    ahead: Option<&ReadAhead>,
) -> Cmd {
    let name = scope.scope.as_str();
    let mut read = Cmd::new();
    read.arg("HMGET").arg(key);
    for field in own_fields(name) {
        read.arg(field);
    }
    if !forks.is_empty() {
        read.arg(format!("b:{name}"));
    }
    for (parent, fork, _) in forks {
        read.arg(format!("g:{fork}")).arg(format!("m:{parent}"));
    }
    if with_fork_base {
        read.arg("h");
        if let Some((_, fork, _)) = forks.first() {
            read.arg(format!("f:{fork}"));
        }
    }
    if let Some(ReadAhead::Join { expected, results }) = ahead {
        let joined = Some((expected.fork, results.as_ref()));
        inbox_fields(&mut read, scope, [&*expected.number], joined);
    }
    read
}

/// The contents of an inbox, and all that a commit needs to know which consumes them. `joined`: the fork that one of
/// them reports, with those of its results that are read at once.
fn inbox_fields<'a>(
    read: &mut Cmd,
    scope: &ScopeRef,
    numbers: impl IntoIterator<Item = &'a str>,
    joined: Option<(u32, Option<&Results>)>,
) {
    let name = scope.scope.as_str();
    for number in numbers {
        read.arg(format!("i:{name}:{number}"));
    }
    read.arg(format!("x:{name}")).arg(format!("F:{name}"));
    if let Some((fork, results)) = joined {
        read.arg(format!("g:{name}.{fork}")).arg("z");
        if let Some(results) = results {
            result_fields(read, scope, fork, 0..results.total);
        }
    }
}

enum Look {
    Held(Box<Held>),
    /// Acquiring the scope gives the reason.
    Refused,
    /// The cached origin belongs to another fork with this name.
    Stale,
}

impl Redis {
    /// Returns `None` if the scope cannot be read without a lease: it is held, over or suspended, or a call is in
    /// flight. Acquiring it gives the reason.
    pub(crate) async fn look_at_scope(&self, scope: &ScopeRef) -> Result<Option<Held>> {
        let forks = enclosing_forks(scope.scope.as_str());
        let fork = forks.first().map(|(_, fork, _)| fork);
        let fork_base = fork.and_then(|fork| self.fork_bases().get(&scope.instance, fork));
        if let (Some(fork_base), Some((_, _, index))) = (&fork_base, forks.first())
            && let Some(held) = fork_base.unread_branch(scope, *index, self.known())
        {
            self.fork_bases().hit();
            return Ok(Some(held));
        }
        let look = match self.look_with(scope, &forks, fork_base).await? {
            Look::Stale => self.look_with(scope, &forks, None).await?,
            look => look,
        };
        Ok(match look {
            Look::Held(held) => Some(*held),
            Look::Refused | Look::Stale => None,
        })
    }

    /// Like [`Redis::look_at_scope`], for a scope to which this process has just delivered an event, which it was read
    /// with.
    pub(crate) async fn look_at_delivered(&self, scope: &ScopeRef) -> Result<Option<Held>> {
        let Some(found) = self.deliveries().take(scope) else {
            return self.look_at_scope(scope).await;
        };
        let ahead = Some(ReadAhead::Event);
        Ok(
            match self.understand(scope, &[], None, ahead, found).await? {
                Look::Held(held) => Some(*held),
                Look::Refused | Look::Stale => None,
            },
        )
    }

    /// A branch that is acquired may begin, so it is no longer unread.
    pub(crate) fn note_begun(&self, scope: &ScopeRef) {
        if let Some((_, fork, index)) = enclosing_forks(scope.scope.as_str()).first()
            && let Some(fork_base) = self.fork_bases().get(&scope.instance, fork)
        {
            fork_base.unread.take(*index);
        }
    }

    /// `fork_base`: the innermost fork, if it is cached. Otherwise it is read with the rest.
    async fn look_with(
        &self,
        scope: &ScopeRef,
        forks: &[(&str, &str, u32)],
        fork_base: Option<ForkBase>,
    ) -> Result<Look> {
        let key = self.keys().hash_of(&scope.instance);
        let expected = match scope.scope.is_root() {
            true => self.expectations().take(&scope.instance),
            false => None,
        };
        let ahead = expected.map(|expected| ReadAhead::Join {
            results: self.few_results(scope, expected.fork),
            expected,
        });
        let read = command(&key, scope, forks, fork_base.is_none(), ahead.as_ref());
        let found = self.query(read).await?;
        self.understand(scope, forks, fork_base, ahead, found).await
    }

    /// `found`: the values of the fields that [`command`] reads.
    async fn understand(
        &self,
        scope: &ScopeRef,
        forks: &[(&str, &str, u32)],
        fork_base: Option<ForkBase>,
        ahead: Option<ReadAhead>,
        found: Vec<Option<Vec<u8>>>,
    ) -> Result<Look> {
        let mut found = found.into_iter();
        let mut next = || found.next().flatten();
        let (status, suspended) = (next(), next());
        let (marks, lease, inbox, timers, record) = (next(), next(), next(), next(), next());
        let is_open = marks.as_ref().is_none_or(|text| is_plain(text));
        if status.as_deref() != Some(b"r") || suspended.is_some() || lease.is_some() || !is_open {
            return Ok(Look::Refused);
        }
        let read_stamp = marks.as_deref().map_or(0, stamp);
        let is_reported = !forks.is_empty() && next().is_some();
        if is_reported {
            return Ok(Look::Refused);
        }
        let mut innermost: Option<Numbers> = None;
        for (_, fork, _) in forks {
            let (Some(numbers), Some(marks)) = (next(), next()) else {
                return Ok(Look::Refused);
            };
            let numbers = numbers::decode(&numbers, &format!("fork {fork} of {scope}"))?;
            let is_closed = numbers.is_closed;
            if is_closed || !is_plain(&marks) {
                return Ok(Look::Refused);
            }
            innermost.get_or_insert(numbers);
        }
        let what = scope.to_string();
        let mut header_bytes = 0;
        let (header, fork) = match (fork_base, &innermost) {
            (Some(fork_base), Some(numbers)) => {
                if fork_base.stamp != numbers.stamp {
                    return Ok(Look::Stale);
                }
                self.fork_bases().hit();
                (fork_base.header, Some(fork_base.fork))
            }
            (_, numbers) => {
                let Some(header) = next() else {
                    return Ok(Look::Refused);
                };
                let fork = match forks.is_empty() {
                    true => None,
                    false => next(),
                };
                header_bytes = header.len();
                let fork_bytes = fork.as_ref().map_or(0, Vec::len);
                let header: Arc<Header> = json::<Header>(&header, &what)?.into();
                // The common data of a single branch is parsed only if it is needed now, since no other branch will need it.
                let others = numbers.as_ref().filter(|numbers| numbers.total > 1);
                let fork: Option<Arc<Fork>> = match fork {
                    Some(fork) if record.as_deref().is_none_or(differs) || others.is_some() => {
                        Some(json::<Fork>(&fork, &what)?.into())
                    }
                    _ => None,
                };
                if let (Some(numbers), Some(fork), Some((_, name, _))) =
                    (others, &fork, forks.first())
                {
                    let fork_base = ForkBase {
                        stamp: numbers.stamp.clone(),
                        header: header.clone(),
                        fork: fork.clone(),
                        unread: Unread::default(),
                        fork_bytes,
                        bytes: header_bytes + fork_bytes,
                    };
                    let fork_base = self.fork_bases().share(&scope.instance, name, fork_base);
                    (header, Some(fork_base.fork))
                } else {
                    (header, fork)
                }
            }
        };
        let mut snapshot = Snapshot {
            recorded: record.is_some(),
            goes: marks.as_ref().is_some_and(|text| text.contains(&b'g')),
            mark: marks,
            record: record.as_ref().map_or(0, Vec::len),
            items: Some(Vec::new()),
            seen: record.is_none().then_some(None),
            timers: Some(timers),
            completes: innermost.as_ref().is_some_and(Numbers::is_nearly_complete),
            header: (header_bytes > 0).then(|| (header.clone(), header_bytes)),
            ..Snapshot::default()
        };
        let ahead = ahead.map(|ahead| (ahead, found.collect()));
        let fork_stamp = innermost
            .as_ref()
            .map_or(0, |numbers| numbers.stamp.parse().unwrap_or(0));
        let record = match (record, fork, innermost, forks.first()) {
            (Some(record), fork, numbers, _) => {
                let numbers = numbers.as_ref();
                let fork = fork
                    .as_deref()
                    .zip(numbers.map(|numbers| numbers.stamp.as_str()));
                let record = read_scope(&record, &what, fork.map(|(fork, made)| (made, fork)))?;
                if record.pending_call().is_some() {
                    return Ok(Look::Refused);
                }
                snapshot.attributes = Some(attributes::heads(&record.attributes));
                Record::Scope(record)
            }
            (None, Some(fork), Some(numbers), Some((_, _, index))) if *index < numbers.open => {
                let fork = Fork {
                    open: numbers.open,
                    needed: numbers.needed,
                    notified: numbers.is_notified,
                    closed: false,
                    ..Arc::unwrap_or_clone(fork)
                };
                Record::Branch {
                    fork,
                    index: *index,
                }
            }
            _ => return Ok(Look::Refused),
        };
        let inbox = self.inbox_of(scope, inbox, ahead, &mut snapshot).await?;
        let Some((inbox, large_joins)) = inbox else {
            return Ok(Look::Refused);
        };
        let lease = Lease {
            scope: scope.clone(),
            token: Lease::SNAPSHOT,
            read_stamp,
            fork_stamp,
            read: self.known().remember(snapshot),
        };
        Ok(Look::Held(Box::new(Held {
            lease,
            header,
            record,
            inbox,
            closed: false,
            large_joins,
        })))
    }

    /// Whether the holder can't have missed anything: no input is waiting, and no enclosing fork has changed.
    pub(crate) async fn is_quiet(&self, lease: &Lease) -> Result<bool> {
        let name = lease.scope.scope.as_str();
        let forks = enclosing_forks(name);
        let mut read = Cmd::new();
        read.arg("HMGET")
            .arg(self.keys().hash_of(&lease.scope.instance));
        read.arg("s").arg("p");
        read.arg(format!("q:{name}")).arg(format!("l:{name}"));
        for (_, fork, _) in &forks {
            read.arg(format!("g:{fork}"));
        }
        let found: Vec<Option<Vec<u8>>> = self.query(read).await?;
        let [Some(status), None, None, Some(held), enclosing @ ..] = &*found else {
            return Ok(false);
        };
        // The lease has its token, its expiry, and whether its holder was notified that the scope is closed.
        let mut held = held.split(|byte| *byte == b' ');
        let token = lease.token.to_string();
        let is_held = held.next() == Some(token.as_bytes()) && held.nth(1) == Some(b"0");
        if status != b"r" || !is_held {
            return Ok(false);
        }
        for numbers in enclosing {
            let Some(numbers) = numbers else {
                return Ok(false);
            };
            let numbers = numbers::decode(numbers, &format!("a fork enclosing {}", lease.scope))?;
            if numbers.is_closed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the inbox. `ahead` is what was expected and has been read already. Returns `None` if the waiting items were
    /// consumed meanwhile. Also returns the forks whose results are left out because they are many or large.
    async fn inbox_of(
        &self,
        scope: &ScopeRef,
        inbox: Option<Vec<u8>>,
        ahead: Option<(ReadAhead, Vec<Option<Vec<u8>>>)>,
        snapshot: &mut Snapshot,
    ) -> Result<Option<(Vec<InboxItem>, Vec<u32>)>> {
        let Some(inbox) = inbox else {
            return Ok(Some((Vec::new(), Vec::new())));
        };
        let key = self.keys().hash_of(&scope.instance);
        let what = format!("the inbox of {scope}");
        let waiting: Vec<Item> = unpack(&inbox, &what)?;
        let joined = waiting.iter().find_map(|(_, id, ..)| joined_fork(id));
        let ahead = ahead.filter(|(ahead, _)| ahead.is_of(&waiting, joined));
        let (mut parts, few) = match ahead {
            Some((ReadAhead::Join { results, .. }, found)) => (found, results),
            Some((ReadAhead::Event, found)) => (found, None),
            None => {
                // A worker that has driven a branch knows how many there are: this saves a request.
                let few = joined.and_then(|fork| self.few_results(scope, fork));
                let numbers = waiting.iter().map(|(number, ..)| number.as_str());
                let mut read = Cmd::new();
                read.arg("HMGET").arg(&key);
                let joined = joined.map(|fork| (fork, few.as_ref()));
                inbox_fields(&mut read, scope, numbers, joined);
                let found: Vec<Option<Vec<u8>>> = self.query(read).await?;
                (found, few)
            }
        };
        let mut others = parts.split_off(waiting.len()).into_iter();
        let mut next = || others.next().flatten();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| damaged(&what, error));
        snapshot.seen = Some(next().map(text).transpose()?);
        snapshot.forks = next().map(text).transpose()?;
        let mut results = Vec::new();
        if let Some(fork) = joined {
            let (numbers, weight) = (next(), next());
            if let Some(numbers) = numbers {
                let base_kib = match weight {
                    Some(_) => {
                        let field = format!("f:{}.{fork}", scope.scope);
                        self.kib_of(&key, &field).await?
                    }
                    None => 0,
                };
                let joining = OwnFork {
                    fork,
                    numbers: numbers::decode(&numbers, &what)?,
                    base_kib,
                    errors: Vec::new(),
                };
                let is_same = |few: &Results| few.stamp == joining.numbers.stamp;
                if few.as_ref().is_some_and(is_same) && joining.numbers.passes_results() {
                    add_results(&mut results, scope, fork, 0, others.collect())?;
                }
                snapshot.own_forks.push(joining);
                snapshot.fork_texts.push(numbers);
            }
        }
        let mut found = Vec::with_capacity(waiting.len());
        let mut items = Vec::with_capacity(waiting.len());
        let mut large = Vec::new();
        for ((number, id, kind, handed_to), input) in waiting.into_iter().zip(parts) {
            let Some(input) = input else { return Ok(None) };
            // The results of branches count where they are stored.
            let is_counted = !id.starts_with("fork-");
            let kib = if is_counted { kib(input.len()) } else { 0 };
            let mut input: Input = json(&input, &what)?;
            if let Input::Joined {
                fork, results: own, ..
            } = &mut input
                && own.is_empty()
            {
                let numbers = snapshot.own_forks.iter().find(|own| own.fork == *fork);
                match numbers.map(|joining| &joining.numbers) {
                    // This is another fork that is complete at the same time.
                    None => *own = self.results_of(scope, *fork).await?,
                    Some(numbers) if !numbers.passes_results() => {}
                    Some(numbers) if self.is_large_join(numbers.reported(), numbers.bytes) => {
                        large.push(*fork);
                    }
                    Some(_) if !results.is_empty() => *own = std::mem::take(&mut results),
                    Some(numbers) => *own = self.result_pages(scope, *fork, numbers).await?,
                }
            }
            items.push(snapshot::Item {
                number,
                id: id.clone(),
                kind,
                handed_to,
                kib,
            });
            found.push(InboxItem { id, input });
        }
        snapshot.inbox = Some(inbox);
        snapshot.items = Some(items);
        Ok(Some((found, large)))
    }

    /// The results of a fork, if its origin is cached and they are few.
    fn few_results(&self, scope: &ScopeRef, fork: u32) -> Option<Results> {
        let name = format!("{}.{fork}", scope.scope);
        let known = self.fork_bases().get(&scope.instance, &name)?;
        let total = known.fork.total;
        (!self.is_large_join(total, 0)).then_some(Results {
            stamp: known.stamp,
            total,
        })
    }

    /// The share of a field in the size of its instance.
    async fn kib_of(&self, key: &str, field: &str) -> Result<usize> {
        let mut read = Cmd::new();
        read.arg("HSTRLEN").arg(key).arg(field);
        let bytes: usize = self.query(read).await?;
        Ok(kib(bytes))
    }
}

/// The results that are read together with the input that reports their fork.
struct Results {
    stamp: String,
    total: u32,
}

/// The part of the inbox that is read with a scope.
enum ReadAhead {
    /// An input is expected, which reports a fork.
    Join {
        expected: Expected,
        results: Option<Results>,
    },
    /// The inbox was read together with the scope, and has an event.
    Event,
}

impl ReadAhead {
    fn is_of(&self, waiting: &[Item], joined: Option<u32>) -> bool {
        match self {
            ReadAhead::Join { expected, .. } => {
                let Expected { fork, number } = expected;
                matches!(waiting, [(found, ..)] if found == number) && joined == Some(*fork)
            }
            ReadAhead::Event => waiting.len() == 1 && joined.is_none(),
        }
    }
}

/// The fork that an input reports.
fn joined_fork(id: &str) -> Option<u32> {
    let (fork, _) = id.strip_prefix("fork-")?.split_once('-')?;
    fork.parse().ok()
}
