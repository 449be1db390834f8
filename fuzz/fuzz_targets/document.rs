//! Any bytes as a definition: the reader must not panic, and an accepted definition must compile and
//! run, whatever the answers to its calls, timers, events and branches are.

#![no_main]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use swirl_engine::{
    Definition, Env, NewInstance, Outcome, branch_scope, new_instance, pending_request, step,
};
use swirl_model::event::{Command, EventMatch, Input};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, read};

const NOW: Timestamp = Timestamp(1_704_067_200_000);

fuzz_target!(|document: &[u8]| -> Corpus {
    // Large enough for every scenario and example; beyond that, size only slows everything down.
    let mut options = Options::default();
    options.limits.bytes_max = 1 << 16;
    options.limits.nodes_max = 20_000;
    options.limits.expanded_bytes_max = 1 << 20;
    let reading = read(document, &MapResources::default(), &options);
    assert_eq!(
        reading.workflow.is_none(),
        reading.diagnostics.has_errors(),
        "there must be a workflow exactly if there are no errors"
    );
    let Some(workflow) = reading.workflow else {
        return Corpus::Keep;
    };
    // A document accepted at deployment must compile: otherwise it would fail when it is first run.
    let mut definition = match Definition::compile(workflow) {
        Ok(definition) => definition,
        Err(problems) => panic!("accepted, and does not compile: {problems:?}"),
    };
    if let Some(definition) = Arc::get_mut(&mut definition) {
        definition.budget = 100;
        definition.fork_max = 1_000;
        definition.limits.time = Duration::from_millis(20);
        definition.limits.memory_bytes = 8 << 20;
        definition.limits.output_bytes = 1 << 20;
    }
    let Ok(input) =
        Data::parse(br#"{"a": [1, "x", null], "name": "n", "id": 7, "b": {"c": true}}"#)
    else {
        return Corpus::Keep;
    };
    let new = NewInstance {
        input,
        ..NewInstance::default()
    };
    let Ok((header, scope)) = new_instance(&definition, InstanceId::new("i"), new, NOW) else {
        return Corpus::Keep;
    };
    let mut world = World {
        definition: &definition,
        header: &header,
        steps: STEPS_MAX,
    };
    world.run(scope, 0);
    Corpus::Keep
});

/// How many inputs all scopes of an instance get together.
const STEPS_MAX: usize = 60;
const DEPTH_MAX: usize = 3;
const BRANCHES_MAX: u32 = 3;

/// Answers what the scopes of an instance ask for: calls, timers, events, sub-workflows and branches.
struct World<'a> {
    definition: &'a Arc<Definition>,
    header: &'a Header,
    steps: usize,
}

impl World<'_> {
    /// Runs a scope, and returns what it reports to the fork that it belongs to.
    fn run(&mut self, mut scope: Scope, depth: usize) -> Option<BranchResult> {
        let mut inputs = VecDeque::from([(NOW, Input::Wake)]);
        let mut reported = None;
        while let Some((now, input)) = inputs.pop_front() {
            if self.steps == 0 || scope.ended() {
                break;
            }
            self.steps -= 1;
            let env = Env {
                now,
                ..Env::default()
            };
            let outcome = step(self.definition, self.header, &mut scope, input, &env);
            if let Outcome::Accepted { commands, .. } = outcome {
                for command in commands {
                    match command {
                        Command::Report(result) => reported = Some(result),
                        command => inputs.extend(self.answers(&scope, command, now, depth)),
                    }
                }
                inputs.push_back((now, Input::Wake));
            }
            if let Some(call) = scope.pending_call() {
                // The arguments are evaluated where the call is made.
                let asked = pending_request(self.definition, self.header, &scope, &env);
                let result = match asked {
                    Some(Ok(request)) if call % 3 != 2 => Ok(request.arguments),
                    _ => Err(WorkflowError {
                        status: Some(503),
                        ..WorkflowError::new("FunctionError", "away")
                    }),
                };
                inputs.push_back((now, Input::CallDone { call, result }));
            }
        }
        reported
    }

    fn answers(
        &mut self,
        scope: &Scope,
        command: Command,
        now: Timestamp,
        depth: usize,
    ) -> Vec<(Timestamp, Input)> {
        let mut answers = Vec::new();
        match command {
            Command::Arm(timer) => {
                answers.push((timer.due.max(now), Input::Timer { seq: timer.seq }));
            }
            Command::Subscribe(wait) => {
                for (slot, filter) in wait
                    .slots
                    .iter()
                    .flat_map(|slot| slot.filters.iter().map(move |filter| (slot.slot, filter)))
                {
                    answers.push((now, event(wait.wait, slot, filter)));
                }
            }
            Command::Fork(fork) if depth < DEPTH_MAX => {
                let open = fork.total.min(BRANCHES_MAX);
                let branches = (0..open).filter_map(|index| {
                    let branch = branch_scope(self.definition, &fork, index);
                    Some((index, self.run(branch, depth + 1)?))
                });
                let results: Vec<_> = branches.collect();
                let done = Some(results.len() as u32);
                let fork = fork.fork;
                answers.push((
                    now,
                    Input::Joined {
                        fork,
                        results,
                        done,
                    },
                ));
            }
            Command::Start(_) => {
                answers.extend((scope.seq.saturating_sub(2)..=scope.seq).map(|call| {
                    let done = Input::SubflowDone {
                        call,
                        result: Ok(scope.data.clone()),
                        terminate: false,
                        generation: 0,
                    };
                    (now, done)
                }));
            }
            _ => {}
        }
        answers
    }
}

/// An event that fits a filter as far as the store can tell.
fn event(wait: u32, slot: u16, filter: &EventMatch) -> Input {
    let mut data = Data::object();
    data.set("n", Data::int(7));
    let attributes = filter.attributes.iter().chain(&filter.correlation);
    let event = CloudEvent {
        specversion: "1.0".to_owned(),
        id: "1".to_owned(),
        source: filter.source.clone().unwrap_or_else(|| "/s".to_owned()),
        kind: filter.kind.clone().unwrap_or_else(|| "t".to_owned()),
        attributes: attributes
            .map(|(name, value)| {
                let value = value.clone().unwrap_or_else(|| "7".to_owned());
                (name.to_string(), Data::string(value))
            })
            .collect(),
        data: Some(data),
    };
    Input::Event {
        wait,
        slot,
        def: filter.def,
        event,
        offered: filter.offers,
        early: false,
    }
}
