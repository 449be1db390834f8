//! Moves instances to other versions of their definitions.

use std::collections::HashMap;
use std::sync::Arc;

use redis::Cmd;
use swirl_commit::Flags;
use swirl_model::difference::Difference;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::Header;
use swirl_model::scope::{BranchResult, Fork, Scope};
use swirl_ports::{InboxItem, MARKS_MAX, Migrated, Migration, ReadMark, Result, Whole};

use crate::Redis;
use crate::attributes;
use crate::branch::{Differing, differs, fork_of, read_scope};
use crate::connect::damaged;
use crate::keys::Span;
use crate::lazy::Item;
use crate::numbers;
use crate::record::{encode, encode_text, flags, read_status, timer_kind};
use crate::reply::{Reply, json, unpack};
use crate::script::{Lazy, Script};

static MIGRATE: Lazy = Lazy::new(|| {
    Script::of_instance(&[
        include_str!("lua/scopes.lua"),
        include_str!("lua/listing.lua"),
        include_str!("lua/lines.lua"),
        include_str!("lua/migrate.lua"),
    ])
});

type Fields = HashMap<String, Vec<u8>>;

/// The fields from which an instance was read.
pub(crate) struct WholeRead {
    /// The values of the fields that change with every change of the instance.
    guards: Vec<(String, Vec<u8>)>,
    /// The differences of branch records from their forks.
    differences: HashMap<ScopeId, Difference>,
    /// The creation times of forks.
    stamps: HashMap<String, String>,
    /// Results and inputs in their stored form.
    results: HashMap<(String, u32), BranchResult>,
    inputs: HashMap<(ScopeId, String), (String, Input)>,
}

impl Redis {
    pub(crate) async fn whole_instance(&self, id: &InstanceId) -> Result<Option<Whole>> {
        // The time is read before the instance, so that a lease that has expired by then has also expired in the
        // instance.
        let now: (u64, u64) = self.query(redis::cmd("TIME")).await?;
        let now_ms = now.0 * 1_000 + now.1 / 1_000;
        let mut read = Cmd::new();
        read.arg("HGETALL").arg(self.keys().hash_of(id));
        let fields: Fields = self.query(read).await?;
        match fields.contains_key("s") {
            true => {
                let (whole, read) = whole(&fields, id, now_ms)?;
                let read = self.wholes().remember(read);
                Ok(Some(Whole { read, ..whole }))
            }
            false => Ok(None),
        }
    }

    pub(crate) async fn migrate_instance(
        &self,
        id: &InstanceId,
        migration: Migration,
    ) -> Result<Migrated> {
        let Some(read) = self.wholes().take(&migration.read) else {
            return Ok(Migrated::Changed);
        };
        let limit = self.options().record_max;
        let root = ScopeRef::root(id.clone());
        let mut keys = self.keys().of(id, Span::All);
        keys.extend(self.keys().listings(self.keys().shard(id)));
        keys.push(self.keys().index(self.keys().shard(id), attributes::INDEX));
        let header = &migration.header;
        let mut call = self.call_scope(&MIGRATE, &keys, &root);
        call.arg(self.options().history_max.max(1));
        call.arg(migration.mark.as_deref().unwrap_or_default());
        call.arg(MARKS_MAX);
        call.arg(encode(header, || format!("instance {id}"), limit)?);
        call.arg(&*header.definition.version);
        call.arg(read.guards.len());
        for (field, value) in &read.guards {
            call.arg(field).arg(value);
        }
        let stamps = self.add_forks(&mut call, &read, &migration.forks, id)?;
        let mut inputs = Vec::new();
        for (scope, item) in &migration.inbox {
            let key = (scope.clone(), item.id.clone());
            if let Some((field, before)) = read.inputs.get(&key)
                && *before != item.input
            {
                let what = || format!("the input '{}' of {id}", item.id);
                inputs.push((field, encode(&item.input, what, limit)?));
            }
        }
        call.arg(inputs.len());
        for (field, input) in inputs {
            call.arg(field).arg(input);
        }
        call.arg(migration.scopes.len());
        for (scope, commands) in migration.scopes {
            call = self.add_scope(call, &read, &stamps, scope, commands, id)?;
        }
        crate::history::add(&mut call, std::slice::from_ref(&migration.entry), id, limit)?;
        let mut answer = Reply::new(self.run(&MIGRATE, call).await?)?;
        match answer.text()?.as_str() {
            "unknown" => return Ok(Migrated::Unknown),
            "known" => return Ok(Migrated::Known),
            "changed" => return Ok(Migrated::Changed),
            _ => {}
        }
        let mut wake = self.read_scopes(id, answer.value()?)?;
        let mark = answer.text()?;
        if !mark.is_empty() {
            let waits = answer.list()?;
            if let Err(error) = self.index_waits(id, mark, waits, &mut wake).await {
                // The reconciler handles the mark that the script left.
                tracing::warn!(instance = %id, %error, "the index of events could not be updated yet");
            }
        }
        wake.sort();
        wake.dedup();
        Ok(Migrated::Done(wake))
    }

    /// Adds the forks with new stamps, so that everything that was read of them before is void. Returns the stamps.
    fn add_forks(
        &self,
        call: &mut Cmd,
        read: &WholeRead,
        forks: &[Fork],
        id: &InstanceId,
    ) -> Result<HashMap<String, String>> {
        let limit = self.options().record_max;
        let mut stamps = HashMap::new();
        call.arg(forks.len());
        for fork in forks {
            let name = format!("{}.{}", fork.parent, fork.fork);
            let stamp = read.stamps.get(&name).and_then(|stamp| stamp.parse().ok());
            let stamp: u64 = stamp.ok_or_else(|| damaged(&name, "it has no stamp"))?;
            let stamp = (stamp + 1).to_string();
            let origin = fork.origin_of_branch();
            call.arg(&name);
            call.arg(encode(&origin, || format!("fork {name} of {id}"), limit)?);
            call.arg(&stamp);
            let changed = fork.results.iter().filter(|(index, result)| {
                read.results.get(&(name.clone(), **index)) != Some(*result)
            });
            let changed: Vec<_> = changed.collect();
            call.arg(changed.len());
            for (index, result) in changed {
                let what = || format!("the result of {name}.{index} of {id}");
                call.arg(index).arg(encode(result, what, limit)?);
            }
            stamps.insert(name, stamp);
        }
        Ok(stamps)
    }

    fn add_scope(
        &self,
        mut call: Cmd,
        read: &WholeRead,
        stamps: &HashMap<String, String>,
        mut scope: Scope,
        commands: Vec<Command>,
        id: &InstanceId,
    ) -> Result<Cmd> {
        let limit = self.options().record_max;
        scope.rev += 1;
        let name = scope.id.clone();
        let what = || format!("{id}/{name}");
        let stamp = fork_of(name.as_str()).and_then(|fork| stamps.get(fork));
        let record = match (read.differences.get(&name), stamp) {
            (Some(difference), Some(stamp)) => {
                let data = std::mem::replace(&mut scope.data, swirl_model::Data::NULL);
                let record = encode(&(stamp, difference, &scope), what, limit)?;
                scope.data = data;
                record
            }
            _ => encode(&scope, what, limit)?,
        };
        call.arg(name.as_str()).arg(record);
        call.arg(scope.rev).arg(flags(Flags::of(&scope)));
        let changes = commands
            .iter()
            .map(|command| change_of(command, &scope, limit));
        let changes = changes.collect::<Result<Vec<_>>>()?.concat();
        call.arg(changes.len());
        for change in changes {
            call.arg(change);
        }
        Ok(call)
    }
}

/// The changes that `lua/migrate.lua` makes for a command of a scope.
fn change_of(command: &Command, scope: &Scope, limit: usize) -> Result<Vec<Vec<String>>> {
    let words =
        |all: &[&str]| -> Vec<String> { all.iter().map(|word| (*word).to_owned()).collect() };
    Ok(match command {
        Command::Arm(timer) => {
            let (seq, due) = (timer.seq.to_string(), timer.due.0.to_string());
            vec![words(&["arm", &seq, &due, timer_kind(timer.kind)])]
        }
        Command::Disarm(seq) => vec![words(&["disarm", &seq.to_string()])],
        Command::Subscribe(subscription) => {
            let what = || format!("a wait of {}", scope.id);
            let slots = encode_text(&subscription.slots, what, limit)?;
            vec![words(&["wait", &subscription.wait.to_string(), &slots])]
        }
        Command::Unsubscribe(wait) => vec![words(&["unwait", &wait.to_string()])],
        Command::Correlate(values) => {
            let values = values.iter();
            let correlate = |(name, value): &(Arc<str>, String)| {
                words(&["correlate", &name.to_ascii_lowercase(), value])
            };
            values.map(correlate).collect()
        }
        Command::Index => vec![words(&["index", &attributes::heads(&scope.attributes)])],
        other => {
            let bad = format!("a migration doesn't carry out {other:?}");
            return Err(damaged(scope.id.to_string(), bad));
        }
    })
}

fn whole(fields: &Fields, id: &InstanceId, now_ms: u64) -> Result<(Whole, WholeRead)> {
    let what = || format!("instance {id}");
    let text = |name: &str| {
        let bytes = fields.get(name).map_or(&[][..], Vec::as_slice);
        String::from_utf8(bytes.to_vec()).map_err(|error| damaged(what(), error))
    };
    let named = |prefix: &str| {
        let names = fields.keys().filter_map(|field| field.strip_prefix(prefix));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    let status = read_status(&text("s")?)?;
    let header: Header = json(fields.get("h").map_or(&[][..], Vec::as_slice), &what())?;
    let mut read = WholeRead {
        guards: Vec::new(),
        differences: HashMap::new(),
        stamps: HashMap::new(),
        results: HashMap::new(),
        inputs: HashMap::new(),
    };
    let mut guard = |field: String| {
        let value = fields.get(&field).cloned().unwrap_or_default();
        read.guards.push((field, value));
    };
    for field in ["n", "h", "p", "s"] {
        guard(field.to_owned());
    }
    let (marks, numbers) = (named("m:"), named("g:"));
    for scope in &marks {
        guard(format!("m:{scope}"));
    }
    for fork in &numbers {
        guard(format!("g:{fork}"));
    }
    let mut forks = HashMap::new();
    for name in numbers {
        let field = |kind: &str| {
            fields
                .get(&format!("{kind}:{name}"))
                .map_or(&[][..], Vec::as_slice)
        };
        let of = format!("fork {name} of {id}");
        let origin: Fork = json(field("f"), &of)?;
        let numbers = numbers::decode(field("g"), &of)?;
        let mut fork = Fork {
            total: numbers.total,
            open: numbers.open,
            needed: numbers.needed,
            notified: numbers.is_notified,
            closed: numbers.is_closed,
            ..origin
        };
        for index in 0..fork.open {
            if let Some(result) = fields.get(&format!("b:{name}.{index}")) {
                let result: BranchResult = json(result, &of)?;
                read.results.insert((name.clone(), index), result.clone());
                fork.restore(index, result);
            }
        }
        read.stamps.insert(name.clone(), numbers.stamp);
        forks.insert(name, fork);
    }
    let mut scopes = Vec::new();
    for name in marks {
        let of = format!("{id}/{name}");
        let record = fields.get(&format!("r:{name}"));
        let record = record.ok_or_else(|| damaged(&of, "it has no record"))?;
        let enclosing = fork_of(&name).and_then(|fork| {
            let stamp = read.stamps.get(fork)?;
            Some((stamp.as_str(), forks.get(fork)?))
        });
        if differs(record) {
            let (_, difference, _): Differing = json(record, &of)?;
            read.differences
                .insert(ScopeId::new(name.as_str()), difference);
        }
        scopes.push(read_scope(record, &of, enclosing)?);
    }
    let mut inbox = Vec::new();
    for name in named("q:") {
        let of = format!("the inbox of {id}/{name}");
        let waiting = fields.get(&format!("q:{name}"));
        let waiting: Vec<Item> = unpack(waiting.map_or(&[][..], Vec::as_slice), &of)?;
        for (number, item, ..) in waiting {
            let field = format!("i:{name}:{number}");
            let input: Input = json(fields.get(&field).map_or(&[][..], Vec::as_slice), &of)?;
            let scope = ScopeId::new(name.as_str());
            read.inputs
                .insert((scope.clone(), item.clone()), (field, input.clone()));
            inbox.push((scope, InboxItem { id: item, input }));
        }
    }
    let mut held = Vec::new();
    for name in named("l:") {
        let lease = text(&format!("l:{name}"))?;
        let until = lease.split(' ').nth(1).and_then(|till| till.parse().ok());
        if until.is_none_or(|until: u64| until > now_ms) {
            held.push(ScopeId::new(name.as_str()));
        }
    }
    let mut forks: Vec<Fork> = forks.into_values().collect();
    forks.sort_by(|a, b| (&a.parent, a.fork).cmp(&(&b.parent, b.fork)));
    let whole = Whole {
        header: header.into(),
        status,
        suspended: fields.contains_key("p"),
        scopes,
        forks,
        inbox,
        held,
        read: ReadMark::default(),
    };
    Ok((whole, read))
}
