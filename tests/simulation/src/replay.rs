//! Repeats the engine's inputs before a commit: it must make the same decisions, and `apply` over its events must
//! result in the scope that `step` left.

use std::sync::Arc;

use swirl_engine::{Definition, Env, Outcome, apply, step};
use swirl_model::event::{Command, Input};
use swirl_model::instance::Header;
use swirl_model::scope::{Cursor, Scope};
use swirl_model::time::Timestamp;

/// The inputs and the result of the decision in a commit.
pub struct Decision<'a> {
    pub def: &'a Arc<Definition>,
    pub header: &'a Header,
    pub before: Scope,
    pub wake: bool,
    pub closed: bool,
    pub inputs: Vec<Input>,
    pub at: Timestamp,
    /// The scope that the driver committed.
    pub after: &'a Scope,
    pub commands: &'a [Command],
}

/// `drop_events`: omits every third event for `apply`, to check that this is noticed.
pub fn replay(decision: Decision<'_>, drop_events: bool) -> Vec<String> {
    let mut found = Vec::new();
    let env = Env {
        now: decision.at,
        ..Env::default()
    };
    let mut scope = decision.before;
    let mut commands = Vec::new();
    let cancelled = decision
        .inputs
        .iter()
        .any(|input| matches!(input, Input::Cancel { .. }));
    let runnable = matches!(scope.cursor, Cursor::Fresh | Cursor::At(_));
    let wake = decision.wake && !cancelled && !decision.closed && runnable;
    let inputs = wake.then_some(Input::Wake).into_iter();
    for input in inputs.chain(decision.inputs) {
        let cancel = matches!(input, Input::Cancel { .. });
        if decision.closed && !cancel || scope.ended() {
            continue;
        }
        let (mut applied, mut again) = (scope.clone(), scope.clone());
        let outcome = step(
            decision.def,
            decision.header,
            &mut scope,
            input.clone(),
            &env,
        );
        let second = step(
            decision.def,
            decision.header,
            &mut again,
            input.clone(),
            &env,
        );
        if outcome != second || scope != again {
            found.push(format!("step isn't deterministic on {input:?}"));
        }
        if let Outcome::Accepted {
            events,
            commands: more,
        } = outcome
        {
            for (index, event) in events.iter().enumerate() {
                if !drop_events || index % 3 != 2 {
                    apply(&mut applied, event);
                }
            }
            commands.extend(more);
        }
        if applied != scope {
            found.push(format!(
                "apply gives another scope than step on {input:?}:\n  {applied:?}\n  {scope:?}"
            ));
        }
    }
    if scope != *decision.after {
        found.push(format!(
            "the driver committed another scope:\n  {:?}\n  {scope:?}",
            decision.after
        ));
    }
    if commands != decision.commands {
        found.push(format!(
            "the driver committed other commands:\n  {:?}\n  {commands:?}",
            decision.commands
        ));
    }
    found
}
