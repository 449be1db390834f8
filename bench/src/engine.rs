//! The engine alone: step and apply, without a store.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use swirl_engine::{Definition, Env, Input, NewInstance, Outcome, new_instance, step};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::{Data, event::Event};

/// Transitions per second of a workflow that runs from its start to its end in one step.
pub fn transitions(def: &Arc<Definition>, input: &Data, seconds: f64) -> Result<f64> {
    let (header, root) = instance(def, input)?;
    let env = Env {
        now: Timestamp(0),
        secrets: Data::NULL,
        ..Env::default()
    };
    let mut count = 0u64;
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds {
        for _ in 0..200 {
            let mut scope = root.clone();
            let outcome = step(def, &header, &mut scope, Input::Wake, &env);
            let Outcome::Accepted { events, .. } = outcome else {
                bail!("refused")
            };
            if !scope.ended() {
                bail!("the workflow did not end: {:?}", scope.fault);
            }
            count += entered(&events);
        }
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

fn entered(events: &[Event]) -> u64 {
    events
        .iter()
        .filter(|event| matches!(event, Event::StateEntered { .. }))
        .count() as u64
}

fn instance(def: &Arc<Definition>, input: &Data) -> Result<(Header, Scope)> {
    let new = NewInstance {
        input: input.clone(),
        ..NewInstance::default()
    };
    Ok(new_instance(
        def,
        InstanceId::new("bench"),
        new,
        Timestamp(0),
    )?)
}
