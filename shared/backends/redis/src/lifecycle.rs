//! The beginning and the end of instances, their outboxes, and the removal of ended ones.

use futures::future::try_join;
use redis::{Cmd, Value};
use swirl_instance::Flags;
use swirl_model::event::{Command, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::Scope;
use swirl_ports::{
    Created, ExecutionStore, InboxItem, InlineRun, InstanceKey, NewRecords, OutboxEntry, Removed,
    Result, Suspended,
};

use crate::Redis;
use crate::attributes;
use crate::events::Begun;
use crate::following;
use crate::keys::Span;
use crate::record::{encode, end_letter, flags, timer_kind};
use crate::reply::{Reply, bytes, json};
use crate::retention;
use crate::script::{Lazy, Script};

const SCOPES: &str = include_str!("lua/scopes.lua");
const LISTING: &str = include_str!("lua/listing.lua");

static CREATE: Lazy =
    Lazy::new(|| Script::of_instance(&[SCOPES, LISTING, include_str!("lua/create.lua")]));
static START: Lazy = Lazy::new(|| Script::alone(include_str!("lua/start.lua")));
static INLINE: Lazy = Lazy::new(|| Script::alone(include_str!("lua/inline.lua")));
static CHILD: Lazy = Lazy::new(|| Script::of_instance(&[include_str!("lua/child.lua")]));
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

/// An instance of an earlier build is first moved to its position.
const REMOVAL_ATTEMPTS: usize = 2;

impl Redis {
    pub(crate) async fn create_instance(&self, new: NewRecords) -> Result<Created> {
        let NewRecords {
            header,
            root,
            ends_with_parent,
            watched,
            inline_run,
        } = new;
        let id = header.id.clone();
        if let Some(mut inline_run) = inline_run {
            inline_run.root.rev += 1;
            let call = self.whole_call(&header, &inline_run)?;
            let run = self.run(&INLINE, call);
            let (found, are_kept) = try_join(run, self.are_kept(&root.start_events)).await?;
            if are_kept {
                self.started(&id, &root.start_events, false).await?;
            }
            let Value::Int(first) = found else {
                return created(found, &header);
            };
            let effects = inline_run.effects.into_iter().zip(first.unsigned_abs()..);
            let entries = effects.map(|(command, number)| OutboxEntry {
                instance: id.clone(),
                id: number,
                command,
            });
            return Ok(Created::WithEffects(entries.collect()));
        }
        let events = &root.start_events;
        let begun = self.begun(&header, events);
        let (begun, are_kept) = try_join(begun, self.are_kept(events)).await?;
        let correlation = &begun.correlation;
        let is_plain =
            correlation.is_empty() && root.timers.is_empty() && header.instance_key.is_none();
        let found = if is_plain {
            let call = self.start_call(&header, &root, watched, &begun)?;
            self.run(&START, call).await?
        } else {
            let call = self.create_call(&header, &root, watched, &begun)?;
            self.run(&CREATE, call).await?
        };
        let created = created(found, &header)?;
        if are_kept {
            self.started(&id, events, !correlation.is_empty()).await?;
        }
        // Even if it exists, since a crash may have occurred before the steps that follow its creation.
        if created != (Created::Exists { conflict: true }) {
            if !correlation.is_empty() {
                self.reindex(&id, &mut Vec::new()).await?;
            }
            if ends_with_parent && let Some(parent) = &header.parent {
                self.follow(&id, &parent.scope.instance).await?;
            }
        }
        Ok(created)
    }

    fn create_call(
        &self,
        header: &Header,
        root: &Scope,
        watched: bool,
        begun: &Begun,
    ) -> Result<Cmd> {
        let id = &header.id;
        let shard = self.keys().shard(id);
        let mut keys = self.keys().of(id, Span::All);
        keys.push(self.keys().index(shard, "keys"));
        keys.extend(self.keys().listings(shard));
        let mut call = self.call_instance(&CREATE, &keys, id, Some(&root.id));
        self.beginning(&mut call, header, root, watched)?;
        let key = InstanceKey::of(header).map(|key| self.named_key(&key));
        call.arg(key.unwrap_or_default());
        call.arg(begun.consumed.len());
        for (generation, digest) in &begun.consumed {
            call.arg(generation).arg(digest);
        }
        call.arg(begun.correlation.len());
        for (name, value) in &begun.correlation {
            call.arg(&**name).arg(value);
        }
        for timer in &root.timers {
            call.arg(timer.seq).arg(timer.due.0);
            call.arg(timer_kind(timer.kind));
        }
        Ok(call)
    }

    fn start_call(
        &self,
        header: &Header,
        root: &Scope,
        watched: bool,
        begun: &Begun,
    ) -> Result<Cmd> {
        let id = &header.id;
        let shard = self.keys().shard(id);
        let index = |name| self.keys().index(shard, name);
        let keys = [
            self.keys().hash_of(id),
            index("ready"),
            index("keys"),
            index("lt:r"),
            index("lw:r"),
            index(&format!("got:{id}")),
        ];
        let mut call = START.call(&keys);
        call.arg(id.as_str());
        self.beginning(&mut call, header, root, watched)?;
        for (generation, digest) in &begun.consumed {
            call.arg(generation).arg(digest);
        }
        Ok(call)
    }

    fn whole_call(&self, header: &Header, inline_run: &InlineRun) -> Result<Cmd> {
        let id = &header.id;
        let limit = self.options().record_max;
        let shard = self.keys().shard(id);
        let index = |name: &str| self.keys().index(shard, name);
        let letter = end_letter(inline_run.status);
        let mut keys = vec![
            self.keys().hash_of(id),
            index(&format!("h:{id}")),
            index("keys"),
            index("ended"),
            index(&format!("lt:{letter}")),
            index(&format!("lw:{letter}")),
            index("outbox"),
        ];
        let found_by = attributes::heads(&inline_run.root.attributes);
        if !found_by.is_empty() || self.follows() {
            keys.push(index(attributes::INDEX));
        }
        if self.follows() {
            keys.push(index(following::INDEX));
        }
        let mut call = INLINE.call(&keys);
        call.arg(id.as_str());
        self.of_beginning(&mut call, header, &inline_run.root)?;
        call.arg(letter);
        match &inline_run.output {
            Some(output) => call.arg(encode(output, || format!("the output of {id}"), limit)?),
            None => call.arg(""),
        };
        match &inline_run.error {
            Some(error) => call.arg(encode(error, || format!("the error of {id}"), limit)?),
            None => call.arg(""),
        };
        call.arg(inline_run.at.0);
        let keep = usize::try_from(self.options().history_max.max(1)).unwrap_or(usize::MAX);
        let surplus = inline_run.history.len().saturating_sub(keep);
        crate::history::add(&mut call, &inline_run.history[surplus..], id, limit)?;
        call.arg(inline_run.effects.len());
        for effect in &inline_run.effects {
            call.arg(encode(effect, || format!("an effect of {id}"), limit)?);
        }
        if !found_by.is_empty() {
            call.arg(found_by);
        }
        Ok(call)
    }

    fn beginning(
        &self,
        call: &mut Cmd,
        header: &Header,
        root: &Scope,
        watched: bool,
    ) -> Result<()> {
        self.of_beginning(call, header, root)?;
        call.arg(if watched { self.process() } else { "" });
        Ok(())
    }

    fn of_beginning(&self, call: &mut Cmd, header: &Header, root: &Scope) -> Result<()> {
        let id = &header.id;
        let limit = self.options().record_max;
        call.arg(encode(header, || format!("instance {id}"), limit)?);
        call.arg(encode(root, || format!("{id}/{}", root.id), limit)?);
        call.arg(flags(Flags::of(root)));
        call.arg(&*header.definition.workflow);
        call.arg(&*header.definition.version);
        call.arg(header.key.as_deref().unwrap_or_default());
        call.arg(retention::text(&header.retention));
        Ok(())
    }

    /// Records at the parent that the instance ends with it. If the parent has ended meanwhile, that ends the instance
    /// too.
    async fn follow(&self, child: &InstanceId, parent: &InstanceId) -> Result<()> {
        let keys = self.keys().of(parent, Span::Ready);
        let mut call = self.call_instance(&CHILD, &keys, parent, None);
        call.arg(child.as_str());
        if self.run::<i64>(&CHILD, call).await? == 1 {
            return Ok(());
        }
        let cancel = Input::Cancel {
            status: EndStatus::Terminated,
        };
        self.add_input(&ScopeRef::root(child.clone()), InboxItem::new(cancel))
            .await?;
        Ok(())
    }

    pub(crate) async fn suspend_instance(
        &self,
        id: &InstanceId,
        on: bool,
    ) -> Result<Option<Suspended>> {
        let mut keys = self.keys().of(id, Span::All);
        keys.push(self.keys().index(self.keys().shard(id), "suspended"));
        let command = Command::SuspendAwaited;
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
        Ok(Some(Suspended {
            wake: self.read_scopes(id, parts.value()?)?,
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
        for _ in 0..REMOVAL_ATTEMPTS {
            // The function refuses an instance whose waits have just changed.
            self.reindex(id, &mut Vec::new()).await?;
            if self
                .take_away(self.keys().shard(id), id, at, self.follows())
                .await?
            {
                // The notes of the waits remain if the instance failed.
                self.reindex(id, &mut Vec::new()).await?;
                return Ok(Removed::Done);
            }
        }
        Ok(Removed::Busy)
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

/// The outcome, from the function's result: nothing, or a header.
fn created(found: Value, wanted: &Header) -> Result<Created> {
    if found == Value::Nil {
        return Ok(Created::New);
    }
    let found: Header = json(&bytes(found)?, &format!("instance {}", wanted.id))?;
    let conflict =
        found.input != wanted.input || found.definition.workflow != wanted.definition.workflow;
    Ok(Created::Exists { conflict })
}
