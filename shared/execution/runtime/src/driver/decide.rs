//! Decides on all inputs in a scope's inbox.

use swirl_engine::{Env, Outcome, step};
use swirl_model::CloudEvent;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::scope::{Cursor, Scope};
use swirl_model::trace::TraceContext;
use swirl_ports::InboxItem;

use super::Run;

#[derive(Default)]
pub(super) struct Decided {
    pub consumed: Vec<String>,
    pub history: Vec<HistoryEntry>,
    pub commands: Vec<Command>,
    pub changed: bool,
    /// Events that came too late for this scope.
    pub refused: Vec<CloudEvent>,
    /// The trace contexts of the events.
    pub links: Vec<(String, TraceContext)>,
}

impl Decided {
    pub fn is_empty(&self) -> bool {
        self.consumed.is_empty() && !self.changed
    }
}

/// Steps the scope with all pending inputs.
pub(super) fn decide(run: &mut Run, env: &Env) -> Decided {
    let mut decided = Decided::default();
    // A scope that must end doesn't begin first.
    let cancelled = run
        .inbox
        .iter()
        .any(|item| matches!(item.input, Input::Cancel { .. }));
    if std::mem::take(&mut run.wake) && !cancelled && !run.closed && is_runnable(&run.scope) {
        feed(run, Input::Wake, env, &mut decided);
    }
    put_timers_last(run);
    while let Some(item) = run.inbox.pop_front() {
        let cancelled = matches!(item.input, Input::Cancel { .. });
        decided.consumed.push(item.id);
        if run.closed && !cancelled || run.scope.ended() {
            match item.input {
                Input::Event {
                    event,
                    offered: false,
                    ..
                } => decided.refused.push(event),
                Input::CallDone { .. } => run.stored = None,
                _ => {}
            }
            continue;
        }
        feed(run, item.input, env, &mut decided);
    }
    decided
}

/// A branch that goes on has new timeouts (docs/language.md#decision-104), so earlier ones no longer count.
fn put_timers_last(run: &mut Run) {
    let mut inputs = run.inbox.iter().map(|item| &item.input);
    if inputs.any(|input| matches!(input, Input::GoOn { .. })) {
        let is_timer = |item: &InboxItem| item.input.timer().is_some();
        run.inbox.make_contiguous().sort_by_key(is_timer);
    }
}

fn feed(run: &mut Run, input: Input, env: &Env, decided: &mut Decided) {
    let (event, is_offered) = match &input {
        Input::Event { event, offered, .. } => (Some(event.clone()), *offered),
        _ => (None, false),
    };
    let is_answer = matches!(input, Input::CallDone { .. });
    let recorder = run.recorder;
    let mut recorded = recorder.input(&input, &mut run.recorded_call, &run.redactor);
    recorder.starts(&mut recorded, &run.scope.start_events, &run.redactor);
    let mut data = recorder.all().then(|| run.scope.data.clone());
    match step(&run.def, &run.header, &mut run.scope, input, env) {
        Outcome::Accepted { events, commands } => {
            if let Some(event) = &event
                && let Some(context) = TraceContext::of(event)
            {
                decided.links.push((event.id.clone(), context));
            }
            decided.changed |= !events.is_empty() || !commands.is_empty();
            for event in &events {
                match event {
                    Event::ValidationFailed { of, message } => {
                        let instance = &run.header.id;
                        tracing::warn!(%instance, "the {of} fails its schema: {message}");
                    }
                    Event::AttributeLeftOut { attribute, message } => {
                        tracing::warn!("the instance is not found by @{attribute}: {message}");
                    }
                    _ => {}
                }
            }
            let until = recorder.until(env.now);
            decided.history.reserve(events.len());
            for event in events {
                if let (Event::Data(next), Some(data)) = (&event, &mut data) {
                    *data = next.clone();
                }
                if !event.is_history() {
                    continue;
                }
                let kept = recorder.entry(
                    &event,
                    data.as_ref(),
                    &mut recorded,
                    &commands,
                    &run.redactor,
                );
                recorder.recent(&event, env.now, &mut recorded, &mut run.scope);
                decided.history.push(HistoryEntry {
                    at: env.now,
                    scope: run.scope.id.clone(),
                    data_until: until.filter(|_| kept.is_some()),
                    data: kept,
                    event,
                });
            }
            decided.commands.extend(commands);
        }
        Outcome::Rejected(reason) => {
            tracing::debug!(scope = %run.lease.scope, %reason, "an input is refused");
            if is_answer {
                run.stored = None;
            }
            // Only an event that the instance has consumed must be given back.
            decided.refused.extend(event.filter(|_| !is_offered));
        }
    }
}

fn is_runnable(scope: &Scope) -> bool {
    matches!(scope.cursor, Cursor::Fresh | Cursor::At(_))
}
