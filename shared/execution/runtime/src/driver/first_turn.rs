//! The first turn of an instance, taken where the instance is created.

use std::sync::Arc;

use swirl_engine::Definition;
use swirl_model::event::Command;
use swirl_model::ids::ScopeRef;
use swirl_model::instance::{Header, Instance, InstanceState};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::{Commit, Lease};

use super::Run;
use super::decide::{Decided, decide};
use super::policy::Policy;
use super::turn::observed;
use crate::observe::{Observed, Observer};

/// The first turn of an instance that doesn't exist yet.
#[derive(Debug)]
pub struct FirstTurn {
    pub commit: Commit,
    /// The instance in its final state, if the turn ended it.
    pub ended: Option<Box<Instance>>,
    /// The report to send to the observer once the commit has taken effect.
    pub observed: Option<Observed>,
}

/// Takes the first turn of a new instance, so that both are one commit. Turns that need anything but data, fail or take
/// long are left to workers. `with_events`: an event may have started the instance, and an instance that ends may
/// produce events, which the caller publishes after the creation.
pub fn take_first_turn(
    def: &Arc<Definition>,
    header: &Header,
    root: &Scope,
    now: Timestamp,
    with_events: bool,
    observer: Option<&dyn Observer>,
) -> Option<FirstTurn> {
    let policy = Policy::Creation { with_events };
    if !policy.may_begin(def, header, root) {
        return None;
    }
    let header = Arc::new(header.clone());
    let lease = Lease::new(ScopeRef::root(header.id.clone()), Lease::SNAPSHOT);
    let mut run = Run::new(def.clone(), header, lease, root.clone());
    run.policy = policy;
    let env = run.env(now);
    let mut decided = decide(&mut run, &env);
    if decided.is_empty() || !policy.allows(&run, &decided) {
        return None;
    }
    let observed = observer.map(|observer| observed(observer, &run, &mut decided, now));
    let Decided {
        history, commands, ..
    } = decided;
    let ended = ended_instance(&run, &commands, now).map(Box::new);
    Some(FirstTurn {
        commit: Commit::first(run.header.id.clone(), run.scope, history, commands, now),
        ended,
        observed,
    })
}

fn ended_instance(run: &Run, commands: &[Command], at: Timestamp) -> Option<Instance> {
    let end = commands.iter().find_map(|command| match command {
        Command::End {
            status,
            output,
            error,
        } => Some((*status, output, error)),
        _ => None,
    });
    let (status, output, error) = end?;
    Some(Instance {
        header: run.header.clone(),
        state: InstanceState {
            status: status.into(),
            output: output.clone(),
            error: error.clone(),
            ended_at: Some(at),
            attributes: run.scope.attributes.clone(),
            ..InstanceState::default()
        },
    })
}
