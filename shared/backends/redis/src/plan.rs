//! Turns a decision about a commit (`swirl_commit`) into a plan: the fields that must be unchanged since they were
//! read, and the fields to write and to remove. A pure function that knows nothing about servers. `lua/write.lua`
//! applies the plan, and computes only values that branches change together, and sizes; `lua/write_others.lua` also does
//! what a closed fork or an ended instance means for scopes that nothing is known about. If a field has changed, the
//! commit is decided and planned again.

use swirl_commit::{Request, Size, decide, kib};
use swirl_model::ids::ScopeId;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;

use crate::branch::differs;
use crate::creation::Creation;
use crate::draft::{Draft, Field};
use crate::events::digest;
use crate::facts::{Facts, More, Others};
use crate::fields::Turn;
use crate::known::Known;
use crate::plan_input::{PlanInput, Unplanned};
use crate::snapshot::Snapshot;
use crate::waits;

#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub facts: Facts<'a>,
    pub draft: Draft<'a>,
    /// Scopes that can begin.
    pub begins: Vec<ScopeId>,
    /// Other scopes that have something to do.
    pub woken: Vec<ScopeId>,
    /// The lease is released, or not taken.
    pub released: bool,
    /// Inputs are waiting for the scope, and no process holds it.
    pub is_woken: bool,
    /// The instance doesn't exist yet.
    pub creates: bool,
    /// Of all scopes of the instance, those with something to do are woken.
    pub wakes_ready: bool,
    /// The scope after the commit.
    pub after: Snapshot,
    /// Identifies this write, and the fork that it makes.
    pub stamp: u64,
    /// The time of this write, by the clock of this process.
    pub millis: String,
    /// Bytes of the origin of that fork.
    pub fork_bytes: usize,
    /// The parent of a branch.
    pub parent: Option<&'a str>,
    /// The scope's forks that this commit closes, by name.
    pub closed: Vec<String>,
}

/// Further fields that an instance may have at its end.
const FIELDS_AT_END: [&str; 9] = ["n", "key", "nk", "end", "at", "hn", "hd", "le", "om"];
const OWN_FIELDS_AT_END: [&str; 3] = ["t:", "x:", "a:"];

pub(crate) fn plan<'a>(input: PlanInput<'a>, stored: &'a Snapshot) -> Result<Plan<'a>, Unplanned> {
    let known = Known::of(stored, &input)?;
    let of_all = |all: &[Vec<u8>]| all.iter().map(|one| kib(one.len())).collect();
    let request = Request {
        commit: input.commit,
        parts: input.parts,
        rev: input.rev,
        effects: input.effects.len(),
        refers_to_fork: differs(&input.record),
        size: Size {
            record: kib(input.record.len()),
            forks: of_all(&input.forks),
            detached: of_all(&input.detached),
            result: input.result.as_ref().map(Vec::len),
        },
        limit: input.limit,
    };
    let decision = decide(&request, &known.snapshot())?;
    let turn = Turn {
        commit: input.commit,
        stored,
        scope: input.commit.lease.scope.scope.as_str(),
        decision,
        draft: Draft::new(input.commit.lease.scope.scope.as_str()),
        input,
    };
    turn.finish(&known)
}

impl<'a> Turn<'a> {
    /// Puts the parts of the decision together.
    fn finish(mut self, known: &Known<'a>) -> Result<Plan<'a>, Unplanned> {
        let (commit, stored, scope) = (self.commit, self.stored, self.scope);
        let (instance, gone) = (commit.lease.scope.instance.as_str(), self.input.parts.gone);
        let creation = stored.creation.as_deref();
        let held = self.guard();
        let (timers, timers_after) = self.timers(known)?;
        let fork_bytes = self.input.forks.last().map_or(0, Vec::len);
        let (forks_after, uncounted) = self.forks()?;
        let (items, inbox_after, own_inputs) = self.inbox()?;
        let seen = self.seen()?;
        let record = self.input.record.len();
        let mark = self.record();
        let (begins, woken) = self.others();
        let puts = self.puts();
        let mut branch = self.branch()?;
        let ends = self.status(forks_after.is_some(), uncounted)?;
        let counts = ends.as_ref().is_some_and(|(_, _, count)| count.is_some());
        let (index, attributes) = self.index()?;

        let Turn {
            decision,
            mut draft,
            mut input,
            ..
        } = self;
        let lease = decision.lease;
        if lease.is_removed {
            draft.remove_own("l:");
        }
        let lease_after = lease
            .is_taken
            .then(|| after_till(decision.is_closed, input.holder, input.attempt));
        // A scope that continues under its lease is in the index already.
        let is_added = lease.is_released || !decision.had_work;
        let member = || format!("{instance}/{scope}");
        let stays = (decision.has_work && is_added).then(member);

        let has_joined = own_inputs.is_some();
        let has_effects = !input.effects.is_empty();
        let numbered = lease.is_taken || has_effects || puts.is_some();
        let sized = decision.gain != 0 || decision.room.is_some() || counts;
        let all = stored.items.iter().flatten();
        let dropped = all.enumerate();
        let dropped = dropped.filter(|(at, _)| decision.inbox.dropped.contains(at));
        let freed = dropped.filter_map(|(_, item)| item.event_key()).map(digest);
        input.freed.extend(freed);
        if let Some(creation) = creation {
            input
                .waits
                .splice(0..0, creation.correlation.iter().cloned());
        }
        // A new instance had no waits.
        let may_wait = creation.is_none() || !input.waits.is_empty();
        let is_over = decision.is_over;
        let waits = waits::change(
            scope,
            (decision.ends_waits && may_wait, is_over && may_wait),
            waits::has_event(commit),
            input.waits,
            input.freed,
        );

        if let Some(creation) = creation {
            draft.create(creation);
        }

        draft.end_compared();
        draft.read_if(numbered, "n");
        draft.read_if(sized, "z");
        let around = branch.as_mut();
        let around = around.and_then(|branch| draft.read_branch(branch, gone));
        draft.read_if(has_effects || counts, "O");
        let is_listed = creation.is_none();
        let has_waits = waits
            .as_ref()
            .is_some_and(|waits| !waits.changes.is_empty());
        draft.read_if(
            is_listed && (index.is_some() || has_waits || ends.is_some()),
            "lw",
        );
        if is_listed && ends.as_ref().is_some_and(|(_, at, _)| at.is_some()) {
            draft.read_if(true, "w");
            draft.read_if(true, "kp");
        }
        if counts {
            for field in FIELDS_AT_END {
                draft.read_if(true, field);
            }
            for kind in OWN_FIELDS_AT_END {
                draft.read(Field::Of(kind, scope));
            }
        }

        // The changes of other scopes.
        let changes_all = ends.is_some() && !counts && is_listed;
        let prunes = branch.as_ref().filter(|branch| branch.is_closed && gone);
        let prunes = prunes.map(|branch| branch.fork);
        let closes = decision.forks.closes.iter();
        let closes: Vec<String> = closes.map(|fork| format!("{scope}.{fork}")).collect();
        let ended = stored.forks.as_deref().filter(|_| is_over);
        let ended = ended.into_iter().flat_map(str::split_ascii_whitespace);
        let ended = ended.map(|fork| format!("{scope}.{fork}"));
        let closed = closes.iter().cloned().chain(ended).collect();
        let follows = !closes.is_empty() || changes_all || prunes.is_some();
        let others = follows.then(|| Others {
            scope,
            closes,
            is_over,
            refreshes: changes_all,
            prunes,
            ..Others::default()
        });
        let millis = ready_since(input.stamp / 1_000, input.commit.at).to_string();
        let own = |kind| draft.place(Field::Of(kind, scope)).unwrap_or_default();
        let at = |name| draft.place(Field::Instance(name));
        let taken = lease_after.clone();
        let more = More {
            instance,
            namespace: input.namespace,
            most: input.limit.unwrap_or_default(),
            stands_still: decision.stands_still,
            held: held.map(|(token, mark)| (token, mark, own("l:"), own("m:"))),
            taken: taken.map(|rest| (format!("l:{scope}"), commit.lease_ms, rest)),
            number_at: at("n").filter(|_| numbered),
            size_at: at("z").filter(|_| sized),
            gain: Some(decision.gain).filter(|gain| *gain != 0),
            room: decision.room,
            around,
            outbox_at: at("O"),
            listed_at: at("lw"),
            watcher_at: at("w"),
            retention_at: at("kp"),
            fields: ends.as_ref().and_then(|(_, _, fields)| *fields),
            waits,
            stays: stays.map(|member| (millis.clone(), member)),
            ends: ends.map(|(letter, at, _)| (letter, at)),
            timers,
            effects: has_effects.then_some((0, input.effects)),
            attributes: index,
            own_inputs,
            puts,
            others,
            creation: creation.map(Creation::facts),
            unread: Some(commit.at.0).filter(|_| input.lines > 0 && input.is_followed),
            due: input.due.filter(|_| input.lines > 0),
        };
        let facts = Facts {
            lines: input.lines,
            elements: input.elements,
            keep: input.history_max,
            leaves: (is_listed && !decision.has_work).then(member),
            branch,
            more: (!more.is_empty()).then_some(more),
        };
        let after = Snapshot {
            recorded: mark.is_some(),
            goes: decision.record.is_some_and(|flags| flags.goes),
            mark,
            lease: lease_after.or_else(|| stored.lease.clone()),
            inbox: inbox_after,
            // The numbers of new inputs aren't known.
            items: (!has_joined).then_some(items),
            seen,
            forks: forks_after,
            timers: timers_after,
            attributes,
            record,
            header: stored.header.clone(),
            ..Snapshot::default()
        };
        let status = decision.status.as_ref();
        Ok(Plan {
            facts,
            draft,
            begins,
            woken,
            released: lease.is_released,
            is_woken: decision.is_woken,
            creates: creation.is_some(),
            wakes_ready: status
                .is_some_and(|change| change.reopens && change.to == Status::Running),
            after,
            millis,
            stamp: input.stamp,
            fork_bytes,
            parent: decision.branch.as_ref().map(|branch| branch.place.parent),
            closed,
        })
    }
}

/// The last part of a lease's text. The number says whether its holder knows that the scope is closed.
fn after_till(is_closed: bool, holder: &str, attempt: u64) -> String {
    format!(" {} {holder} {attempt}", u8::from(is_closed))
}

/// The time from which a scope is ready, in milliseconds: by the store's clock, on which the search for late scopes relies,
/// and not by the machine's own, which may be hours off. Only an instant that is days off isn't taken.
fn ready_since(own_ms: u64, instant: Timestamp) -> u64 {
    const PLAUSIBLE_MS: u64 = 24 * 60 * 60 * 1_000;
    let instant = u64::try_from(instant.0).unwrap_or(0);
    match instant.abs_diff(own_ms) < PLAUSIBLE_MS {
        true => instant,
        false => own_ms,
    }
}
