//! Reads a history, entry by entry, into steps.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use swirl_api::Instant;
use swirl_api::history::{Happened, HistoryEntry};
use swirl_api::instance::ScopePosition;
use swirl_model::event::Event;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Purpose, TimerKind};
use swirl_model::time::Timestamp;

use super::flow::Flow;
use super::{Kind, Mark, Outcome, Step, Steps};
use crate::names::split;

#[derive(Default)]
pub(super) struct Build {
    steps: Steps,
    flows: Vec<Flow>,
    by_scope: HashMap<String, usize>,
    first_at: Option<i64>,
}

impl Build {
    pub(super) fn finish(mut self, open: Option<&[ScopePosition]>) -> Steps {
        self.close_ended(open);
        self.wait_in(open.unwrap_or_default());
        self.join_single_attempts();
        self.steps
    }

    pub(super) fn take(&mut self, line: usize, entry: &HistoryEntry) {
        let Instant(at) = entry.at;
        let at = at.0;
        self.first_at.get_or_insert(at);
        let scope = self.scope(&entry.scope, entry, line);
        if self.flows[scope].is_over {
            self.revive(scope);
        }
        if let Some(event) = entry.event.event() {
            self.event(scope, event, at, line);
        }
        let flow = &mut self.flows[scope];
        flow.last = Some(at);
        let step = flow.line_of.take().or_else(|| flow.current());
        self.steps.of_line.push(step);
        if let Some(step) = step {
            self.steps.all[step].lines.push(line);
        }
    }

    /// The scope of an entry. A branch begins with its first entry.
    fn scope(&mut self, id: &str, entry: &HistoryEntry, line: usize) -> usize {
        if let Some(known) = self.by_scope.get(id) {
            return *known;
        }
        let mut flow = Flow {
            id: id.to_owned(),
            place: entry.place.clone().unwrap_or_default(),
            ..Flow::default()
        };
        if let Some((outer, fork, index)) = split(id) {
            let outer = match self.by_scope.get(outer) {
                Some(known) => *known,
                None => self.outer(outer, line),
            };
            let around = &self.flows[outer];
            let parent = around.forks.get(&fork).copied().flatten();
            let parent = parent.or_else(|| around.state_or_own());
            let name = flow.name(
                &around.place,
                parent.map(|it| &*self.steps.all[it].name),
                index,
            );
            let kind = match name.ends_with(']') {
                true => Kind::Iteration,
                false => Kind::Branch,
            };
            let scope = self.flows.len();
            flow.own = Some(self.begin(kind, name, entry.at.0.0, line, (parent, scope)));
        }
        self.flows.push(flow);
        let scope = self.flows.len() - 1;
        self.by_scope.insert(id.to_owned(), scope);
        scope
    }

    /// A scope of which no entry is known.
    fn outer(&mut self, id: &str, line: usize) -> usize {
        let entry = HistoryEntry {
            at: Instant(Timestamp(self.first_at.unwrap_or(0))),
            scope: id.to_owned(),
            event: Happened::Unknown(Default::default()),
            data: None,
            data_until: None,
            place: None,
        };
        self.scope(id, &entry, line)
    }

    fn begin(
        &mut self,
        kind: Kind,
        name: impl Into<String>,
        from: i64,
        first: usize,
        (parent, scope): (Option<usize>, usize),
    ) -> usize {
        let number = self.steps.all.len();
        self.steps.all.push(Step {
            kind,
            name: name.into(),
            from,
            to: None,
            outcome: Outcome::Open,
            marks: Vec::new(),
            compensates: false,
            first,
            last: None,
            lines: Vec::new(),
            parent,
            children: Vec::new(),
            scope,
        });
        match parent {
            Some(parent) => self.steps.all[parent].children.push(number),
            None => self.steps.roots.push(number),
        }
        number
    }

    fn end(&mut self, step: usize, at: i64, outcome: Outcome, line: Option<usize>) {
        let step = &mut self.steps.all[step];
        if step.to.is_none() {
            (step.to, step.outcome, step.last) = (Some(at), outcome, line);
        }
    }

    fn reopen(&mut self, step: usize) {
        let step = &mut self.steps.all[step];
        if matches!(step.outcome, Outcome::Failed | Outcome::Stopped) {
            (step.to, step.outcome, step.last) = (None, Outcome::Open, None);
        }
    }

    /// A scope continues where it was when something around it ended.
    fn revive(&mut self, scope: usize) {
        let flow = &mut self.flows[scope];
        flow.is_over = false;
        if flow.stack.is_empty() {
            flow.stack = std::mem::take(&mut flow.kept);
        }
        let open: Vec<usize> = flow.own.iter().chain(&flow.stack).copied().collect();
        for step in open {
            self.reopen(step);
        }
    }

    fn mark(&mut self, step: Option<usize>, mark: Mark, at: i64) {
        if let Some(step) = step {
            self.steps.all[step].marks.push((mark, at));
        }
    }

    /// A wait that has just ended.
    fn waited(&mut self, scope: usize, name: String, at: i64, line: usize) {
        let flow = &self.flows[scope];
        let (parent, from) = (flow.current(), flow.last.unwrap_or(at));
        let wait = self.begin(Kind::Wait, name, from, line, (parent, scope));
        self.end(wait, at, Outcome::Done, Some(line));
        self.flows[scope].line_of = Some(wait);
    }

    /// Ends the states of a scope, and what is in them.
    fn close(&mut self, scope: usize, at: i64, outcome: Outcome, line: Option<usize>) {
        let flow = &mut self.flows[scope];
        let inner = [flow.wait.take(), flow.attempt.take(), flow.action.take()];
        let states = std::mem::take(&mut flow.stack);
        for step in inner.into_iter().flatten() {
            self.end(step, at, Outcome::Stopped, line);
        }
        for step in states.into_iter().rev() {
            self.end(step, at, outcome, line);
        }
    }

    /// Ends the scopes of a fork, or of all forks of a scope.
    fn close_forks(&mut self, prefix: &str, at: i64) {
        if self.flows.len() < 2 {
            return;
        }
        let inner: Vec<usize> = self
            .by_scope
            .iter()
            .filter(|(id, _)| id.starts_with(prefix))
            .map(|(_, scope)| *scope)
            .collect();
        for scope in inner {
            if self.flows[scope].is_over {
                continue;
            }
            self.flows[scope].is_over = true;
            let last = self.flows[scope].last.unwrap_or(at);
            let flow = &self.flows[scope];
            let is_working = flow.action.is_some() || !flow.stack.is_empty();
            let (end, outcome) = match is_working {
                true => (at, Outcome::Stopped),
                false => (last, Outcome::Done),
            };
            self.flows[scope].kept = self.flows[scope].stack.clone();
            self.close(scope, end, Outcome::Stopped, None);
            if let Some(own) = self.flows[scope].own {
                self.end(own, end, outcome, None);
            }
        }
    }

    fn event(&mut self, scope: usize, event: &Event, at: i64, line: usize) {
        match event {
            Event::StateEntered { name, purpose, .. } => {
                self.entered(scope, name, *purpose, at, line);
            }
            Event::StateLeft { name, failed, .. } => self.left(scope, name, *failed, at, line),
            Event::StateSkipped { name, .. } => {
                let parent = self.flows[scope].state_or_own();
                let step = self.begin(Kind::State, &**name, at, line, (parent, scope));
                self.end(step, at, Outcome::Skipped, Some(line));
                self.flows[scope].line_of = Some(step);
            }
            Event::TaskRetried { .. } => {
                self.mark(self.flows[scope].state_or_own(), Mark::Retried, at);
            }
            Event::ActionStarted {
                action,
                attempt,
                in_state,
                ..
            } => self.started(scope, action, (*attempt, in_state.as_ref()), at, line),
            Event::ActionCompleted { action, .. } => {
                self.action_ended(scope, action, Outcome::Done, at, line);
            }
            Event::ActionFailed {
                action, retry_ms, ..
            } => match retry_ms {
                None => self.action_ended(scope, action, Outcome::Failed, at, line),
                Some(_) => self.will_retry(scope, action, at, line),
            },
            Event::ActionSkipped { action, .. } => {
                let parent = self.flows[scope].state_or_own();
                let step = self.begin(Kind::Action, &**action, at, line, (parent, scope));
                self.end(step, at, Outcome::Skipped, Some(line));
                self.flows[scope].line_of = Some(step);
            }
            Event::EventConsumed { name, .. } => {
                self.waited(scope, format!("event {name}"), at, line);
            }
            Event::Forked { fork, in_state, .. } => {
                self.known_in(scope, in_state.as_ref(), line);
                let current = self.flows[scope].state_or_own();
                self.flows[scope].forks.insert(*fork, current);
            }
            Event::Joined { fork, .. } => {
                let id = self.flows[scope].id.clone();
                self.close_forks(&format!("{id}.{fork}."), at);
            }
            Event::TimedOut { timer } => self.timed_out(scope, timer.kind, at, line),
            Event::Compensating { states } => {
                self.flows[scope].undoes = states.clone();
                self.mark(self.flows[scope].state_or_own(), Mark::Compensated, at);
            }
            Event::Compensated => self.compensated(scope, at),
            Event::BranchFailed { .. } => {
                self.flows[scope].kept = self.flows[scope].stack.clone();
                self.close(scope, at, Outcome::Failed, Some(line));
                if let Some(own) = self.flows[scope].own {
                    self.end(own, at, Outcome::Failed, Some(line));
                    self.flows[scope].line_of = Some(own);
                }
            }
            Event::Retried => self.retried(scope, at, line),
            Event::CallRepeated { .. } => self.mark(self.flows[scope].current(), Mark::Retried, at),
            Event::Operated { state, .. } => {
                self.flows[scope].is_sent_back |= state.is_some();
                self.mark(self.flows[scope].current(), Mark::Operated, at);
            }
            Event::Ended { status, .. } => self.ended(scope, *status, at, line),
            _ => {}
        }
    }

    fn entered(&mut self, scope: usize, name: &str, purpose: Purpose, at: i64, line: usize) {
        if purpose != Purpose::Main {
            self.close(scope, at, Outcome::Stopped, Some(line));
        }
        self.end_action(scope, at, line);
        let parent = self.flows[scope].state_or_own();
        let step = self.begin(Kind::State, name, at, line, (parent, scope));
        self.steps.all[step].compensates = purpose == Purpose::Compensation;
        self.flows[scope].stack.push(step);
    }

    /// The history doesn't say what an action waits for after its end.
    fn end_action(&mut self, scope: usize, at: i64, line: usize) {
        let flow = &mut self.flows[scope];
        let open = [flow.wait.take(), flow.attempt.take(), flow.action.take()];
        for step in open.into_iter().flatten() {
            self.end(step, at, Outcome::Stopped, Some(line));
        }
    }

    fn left(&mut self, scope: usize, name: &str, failed: bool, at: i64, line: usize) {
        let id = self.flows[scope].id.clone();
        self.close_forks(&format!("{id}."), at);
        self.end_action(scope, at, line);
        let outcome = match failed {
            true => Outcome::Caught,
            false => Outcome::Done,
        };
        let stack = &self.flows[scope].stack;
        let found = stack
            .iter()
            .rposition(|step| self.steps.all[*step].name == name);
        let step = match found {
            Some(found) => {
                let inner = self.flows[scope].stack.split_off(found);
                for step in inner.iter().skip(1).rev() {
                    self.end(*step, at, Outcome::Stopped, Some(line));
                }
                inner[0]
            }
            None => match self.kept(scope, name) {
                Some(step) => step,
                // It was entered before the part of the history that is known.
                None => {
                    let parent = self.flows[scope].state_or_own();
                    let from = self.earlier(scope, at);
                    self.begin(Kind::State, name, from, line, (parent, scope))
                }
            },
        };
        self.end(step, at, outcome, Some(line));
        self.flows[scope].line_of = Some(step);
    }

    fn kept(&self, scope: usize, name: &str) -> Option<usize> {
        let kept = &self.flows[scope].kept;
        let mut kept = kept.iter().rev().copied();
        kept.find(|step| self.steps.all[*step].name == name)
    }

    /// When something began of which the beginning is unknown.
    fn earlier(&self, scope: usize, at: i64) -> i64 {
        let flow = &self.flows[scope];
        let known = flow.last.filter(|_| flow.own.is_some());
        known.or(self.first_at).unwrap_or(at)
    }

    /// The main flow is in this state, which was entered before the part of the history that is known.
    fn known_in(&mut self, scope: usize, state: Option<&Arc<str>>, line: usize) {
        let flow = &self.flows[scope];
        if let (None, true, Some(state)) = (flow.own, flow.stack.is_empty(), state) {
            let from = self.first_at.unwrap_or_default();
            let step = self.begin(Kind::State, &**state, from, line, (None, scope));
            self.flows[scope].stack.push(step);
        }
    }

    fn started(
        &mut self,
        scope: usize,
        name: &str,
        (attempt, state): (u32, Option<&Arc<str>>),
        at: i64,
        line: usize,
    ) {
        self.known_in(scope, state, line);
        if let Some(wait) = self.flows[scope].wait.take() {
            self.end(wait, at, Outcome::Done, Some(line));
        }
        let open = self.flows[scope].action;
        let open = open.filter(|open| attempt > 1 && self.steps.all[*open].name == name);
        let action = match open {
            Some(open) => open,
            None => {
                self.end_action(scope, at, line);
                let parent = self.flows[scope].state_or_own();
                self.begin(Kind::Action, name, at, line, (parent, scope))
            }
        };
        let label = format!("attempt {attempt}");
        let step = self.begin(Kind::Attempt, label, at, line, (Some(action), scope));
        let flow = &mut self.flows[scope];
        (flow.action, flow.attempt) = (Some(action), Some(step));
    }

    fn action_ended(&mut self, scope: usize, name: &str, outcome: Outcome, at: i64, line: usize) {
        let flow = &mut self.flows[scope];
        let open = [flow.attempt.take(), flow.action.take()];
        let (attempt, action) = match open {
            [attempt, Some(action)] => (attempt, action),
            // It was started before the part of the history that is known.
            [_, None] => {
                let parent = self.flows[scope].state_or_own();
                let from = self.earlier(scope, at);
                (
                    None,
                    self.begin(Kind::Action, name, from, line, (parent, scope)),
                )
            }
        };
        if let Some(wait) = self.flows[scope].wait.take() {
            self.end(wait, at, Outcome::Stopped, Some(line));
        }
        if let Some(attempt) = attempt {
            self.end(attempt, at, outcome, Some(line));
        }
        self.end(action, at, outcome, Some(line));
        self.flows[scope].line_of = attempt.or(Some(action));
    }

    fn will_retry(&mut self, scope: usize, name: &str, at: i64, line: usize) {
        let action = match self.flows[scope].action {
            Some(action) => action,
            None => {
                let parent = self.flows[scope].state_or_own();
                let from = self.earlier(scope, at);
                self.begin(Kind::Action, name, from, line, (parent, scope))
            }
        };
        let attempt = self.flows[scope].attempt.take();
        if let Some(attempt) = attempt {
            self.end(attempt, at, Outcome::Failed, Some(line));
        }
        self.mark(Some(action), Mark::Retried, at);
        let label = "retry delay";
        let wait = self.begin(Kind::Wait, label, at, line, (Some(action), scope));
        let flow = &mut self.flows[scope];
        (flow.action, flow.wait) = (Some(action), Some(wait));
        flow.line_of = attempt.or(Some(action));
    }

    fn timed_out(&mut self, scope: usize, kind: TimerKind, at: i64, line: usize) {
        match kind {
            TimerKind::Sleep => self.waited(scope, "sleep".to_owned(), at, line),
            TimerKind::Pause => self.waited(scope, "pause between iterations".to_owned(), at, line),
            TimerKind::RetryDelay => {
                if let Some(wait) = self.flows[scope].wait.take() {
                    self.end(wait, at, Outcome::Done, Some(line));
                    self.flows[scope].line_of = Some(wait);
                }
            }
            TimerKind::Action => self.mark(self.flows[scope].current(), Mark::TimedOut, at),
            TimerKind::Branch => {
                let own = self.flows[scope].own;
                self.mark(
                    own.or_else(|| self.flows[scope].current()),
                    Mark::TimedOut,
                    at,
                );
            }
            _ => self.mark(self.flows[scope].state_or_own(), Mark::TimedOut, at),
        }
    }

    fn compensated(&mut self, scope: usize, at: i64) {
        let names = std::mem::take(&mut self.flows[scope].undoes);
        for name in names {
            let all = self.steps.all.iter_mut().rev();
            let mut own = all.filter(|step| step.scope == scope && step.kind == Kind::State);
            let found = own.find(|step| step.name == *name && step.outcome == Outcome::Done);
            if let Some(step) = found {
                step.outcome = Outcome::Compensated;
                step.marks.push((Mark::Compensated, at));
            }
        }
    }

    /// An operator lets it continue: at the failed step, or at another state.
    fn retried(&mut self, scope: usize, at: i64, line: usize) {
        match std::mem::take(&mut self.flows[scope].is_sent_back) {
            true => self.close(scope, at, Outcome::Failed, Some(line)),
            false => self.revive(scope),
        }
        self.mark(self.flows[scope].state_or_own(), Mark::Operated, at);
    }

    fn ended(&mut self, scope: usize, status: EndStatus, at: i64, line: usize) {
        let outcome = match status {
            EndStatus::Completed | EndStatus::Terminated => Outcome::Done,
            EndStatus::Faulted => Outcome::Failed,
            EndStatus::Cancelled => Outcome::Stopped,
        };
        let id = self.flows[scope].id.clone();
        self.flows[scope].line_of = self.flows[scope].state_or_own();
        if status == EndStatus::Faulted {
            // The instance may continue where it is.
            self.flows[scope].kept = self.flows[scope].stack.clone();
        }
        self.close(scope, at, outcome, Some(line));
        self.close_forks(&format!("{id}."), at);
    }

    fn close_ended(&mut self, open: Option<&[ScopePosition]>) {
        let Some(open) = open else { return };
        let open: HashSet<&str> = open.iter().map(|place| &*place.scope).collect();
        let over: Vec<usize> = self
            .by_scope
            .iter()
            .filter(|(id, _)| !open.contains(id.as_str()))
            .map(|(_, scope)| *scope)
            .collect();
        for scope in over {
            let Some(own) = self.flows[scope].own else {
                continue;
            };
            let last = self.flows[scope].last;
            let last = last.unwrap_or(self.steps.all[own].from);
            self.close(scope, last, Outcome::Done, None);
            self.end(own, last, Outcome::Done, None);
        }
    }

    /// The waits that have not ended.
    fn wait_in(&mut self, open: &[ScopePosition]) {
        for place in open {
            let Some(scope) = self.by_scope.get(&place.scope).copied() else {
                continue;
            };
            let names = place
                .waits_for
                .iter()
                .filter_map(|event| event.name.clone());
            let names: Vec<String> = names.collect();
            let name = match &*place.doing {
                "waiting for events" | "waiting for an answer" if !names.is_empty() => {
                    format!("event {}", names.join(", "))
                }
                "waiting for events" => "event".to_owned(),
                "sleeping" => "sleep".to_owned(),
                _ => continue,
            };
            let flow = &self.flows[scope];
            let (Some(parent), Some(from)) = (flow.current(), flow.last) else {
                continue;
            };
            if self.steps.all[parent].to.is_some() {
                continue;
            }
            let first = self.steps.all[parent].first;
            self.begin(Kind::Wait, name, from, first, (Some(parent), scope));
        }
    }

    /// An action with one attempt is one step.
    fn join_single_attempts(&mut self) {
        for step in 0..self.steps.all.len() {
            let one = &self.steps.all[step];
            let (Kind::Action, [only]) = (one.kind, &one.children[..]) else {
                continue;
            };
            let only = *only;
            if self.steps.all[only].kind != Kind::Attempt {
                continue;
            }
            let attempt = &mut self.steps.all[only];
            let lines = std::mem::take(&mut attempt.lines);
            let marks = std::mem::take(&mut attempt.marks);
            let inner = std::mem::take(&mut attempt.children);
            for line in &lines {
                self.steps.of_line[*line] = Some(step);
            }
            for inner in &inner {
                self.steps.all[*inner].parent = Some(step);
            }
            let one = &mut self.steps.all[step];
            one.lines.extend(lines);
            one.lines.sort_unstable();
            one.marks.extend(marks);
            one.children = inner;
        }
    }
}
