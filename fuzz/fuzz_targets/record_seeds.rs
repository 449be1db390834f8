//! Seeds of the target `record`: scopes of `all.sw.json`, breadth first from its beginning, each with
//! an input that it accepts, and the result.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use swirl_engine::{Definition, Env, NewInstance, Outcome, branch_scope, new_instance, step};
use swirl_model::difference::Difference;
use swirl_model::event::{Command, EventMatch, Input};
use swirl_model::ids::InstanceId;
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};

const NOW: Timestamp = Timestamp(1_704_067_200_000);
const SCOPES_MAX: usize = 250;

pub fn write_all(folder: &Path, definition: &Arc<Definition>) {
    let new = NewInstance {
        input: Data::parse(br#"{"id": "7", "a": 1}"#).expect("JSON"),
        ..NewInstance::default()
    };
    let (header, root) =
        new_instance(definition, InstanceId::new("i"), new, NOW).expect("it begins");
    write(folder, 'h', &header);
    explore(folder, definition, &header, root);
}

fn explore(folder: &Path, definition: &Arc<Definition>, header: &Header, root: Scope) {
    let env = Env {
        now: NOW,
        secrets: Data::object(),
        ..Env::default()
    };
    let mut seen = BTreeSet::new();
    let mut left = VecDeque::from([root]);
    while let Some(scope) = left.pop_front() {
        // By its cursor, whatever its data and numbers are.
        if seen.len() >= SCOPES_MAX || !seen.insert(format!("{:?}", scope.cursor)) {
            continue;
        }
        for input in inputs(&scope) {
            // A timer isn't early.
            let due = scope
                .timers
                .iter()
                .find(|timer| matches!(input, Input::Timer { seq } if seq == timer.seq));
            let env = Env {
                now: due.map_or(NOW, |timer| timer.due),
                ..env.clone()
            };
            let mut after = scope.clone();
            let outcome = step(definition, header, &mut after, input.clone(), &env);
            let Outcome::Accepted { events, commands } = outcome else {
                continue;
            };
            write(folder, 's', &(header, &scope, &input));
            write(folder, 'n', &input);
            for event in events.iter().filter(|event| event.is_history()) {
                write(folder, 'e', event);
            }
            for command in &commands {
                write(folder, 'c', command);
                if let Command::Fork(fork) = command {
                    write(folder, 'f', fork);
                    left.push_back(branch_scope(definition, fork, 0));
                }
            }
            let difference = Difference::of(&header.input, &after.data);
            let difference = difference.unwrap_or(Difference::Same);
            write(folder, 'd', &(&header.input, &after.data, difference));
            if !after.ended() {
                left.push_back(after);
            }
        }
    }
}

fn inputs(scope: &Scope) -> Vec<Input> {
    let broken = WorkflowError {
        code: Some("503".to_owned()),
        ..WorkflowError::new("broken", "away")
    };
    let mut inputs = vec![
        Input::Wake,
        Input::Cancel {
            status: EndStatus::Cancelled,
        },
        Input::Retry,
        Input::Rerun {
            state: "Each".to_owned(),
        },
    ];
    inputs.extend(
        scope
            .timers
            .iter()
            .map(|timer| Input::Timer { seq: timer.seq }),
    );
    let ok = || Data::parse(br#"{"x": 1}"#).expect("JSON");
    for seq in scope.seq.saturating_sub(6)..=scope.seq {
        for result in [Ok(ok()), Err(broken.clone())] {
            inputs.push(Input::CallDone {
                call: seq,
                result: result.clone(),
            });
            inputs.push(Input::SubflowDone {
                call: seq,
                result,
                terminate: false,
                generation: 1,
            });
        }
        let done = BranchResult::Done {
            merges: Vec::new(),
            result: Some(ok()),
            left: false,
            context: None,
        };
        inputs.push(Input::Joined {
            fork: seq,
            results: vec![(0, done.clone()), (1, done.clone()), (2, done)],
            done: Some(3),
        });
    }
    for wait in scope.wait.iter().chain(&scope.answer) {
        for place in &wait.slots {
            for EventMatch { def, kind, .. } in &place.filters {
                let kind = kind.as_deref().unwrap_or("one");
                let text = format!(
                    r#"{{"specversion":"1.0","id":"1","source":"/s","type":"{kind}","key":"7","data":{{"y":2}}}}"#
                );
                let event: CloudEvent = serde_json::from_str(&text).expect("an event");
                inputs.push(Input::Event {
                    wait: wait.wait,
                    slot: place.slot,
                    def: *def,
                    event,
                    offered: false,
                    early: false,
                });
            }
        }
    }
    inputs
}

fn write(folder: &Path, kind: char, record: &impl Serialize) {
    let mut seed = vec![kind as u8];
    serde_json::to_writer(&mut seed, record).expect("a record is JSON");
    // FNV-1a: the name only has to be the same each time.
    let hash = seed.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    std::fs::write(folder.join(format!("{hash:016x}")), seed)
        .expect("the folder can be written to");
}
