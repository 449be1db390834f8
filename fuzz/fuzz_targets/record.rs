//! Any bytes as a stored record. A readable record is the same when it is written and read again. The engine steps any
//! readable scope without a panic, however damaged it is. Data that is written as a difference is restored unchanged.

#![no_main]

mod record_seeds;

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use swirl_engine::{Definition, Env, Outcome, apply, step};
use swirl_model::difference::Difference;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::instance::{Header, InstanceState};
use swirl_model::merge::merge_over;
use swirl_model::scope::{BranchResult, Fork, Scope};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, read};

const NOW: Timestamp = Timestamp(1_704_067_200_000);

static DEFINITION: LazyLock<Arc<Definition>> = LazyLock::new(|| {
    let document = include_bytes!("../all.sw.json");
    let reading = read(document, &MapResources::default(), &Options::default());
    let workflow = reading.workflow.expect("it is a definition");
    let mut definition = Definition::compile(workflow).expect("it compiles");
    if let Some(definition) = Arc::get_mut(&mut definition) {
        definition.budget = 50;
        definition.fork_max = 100;
        definition.limits.time = Duration::from_millis(20);
        definition.limits.memory_bytes = 8 << 20;
        definition.limits.output_bytes = 1 << 20;
    }
    definition
});

/// The variable with the folder for the seeds; if it is set, nothing else is done.
const SEEDS: &str = "SWIRL_FUZZ_SEEDS";

fn seeds() {
    if let Some(folder) = std::env::var_os(SEEDS) {
        record_seeds::write_all(folder.as_ref(), &DEFINITION);
        std::process::exit(0);
    }
}

fuzz_target!(init: seeds(), |record: &[u8]| {
    let Some((kind, json)) = record.split_first() else {
        return;
    };
    match kind {
        b's' => stepped(json),
        b'h' => same::<Header>(json),
        b'i' => same::<InstanceState>(json),
        b'f' => same::<Fork>(json),
        b'n' => same::<Input>(json),
        b'c' => same::<Command>(json),
        b'e' => same::<Event>(json),
        b'b' => same::<BranchResult>(json),
        b'y' => same::<HistoryEntry>(json),
        b'd' => differing(json),
        _ => same::<CloudEvent>(json),
    }
});

fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(json) else {
        return;
    };
    let written = serde_json::to_vec(&value).expect("a record is JSON");
    let again: T = serde_json::from_slice(&written).expect("it was just written");
    assert_eq!(again, value, "{}", String::from_utf8_lossy(&written));
}

/// `[header, scope, input, ...]`
fn stepped(json: &[u8]) {
    let Ok(parts) = serde_json::from_slice::<Vec<Box<serde_json::value::RawValue>>>(json) else {
        return;
    };
    let mut parts = parts.iter().map(|part| part.get().as_bytes());
    let (Some(header), Some(scope)) = (parts.next(), parts.next()) else {
        return;
    };
    same::<Header>(header);
    same::<Scope>(scope);
    let (Ok(header), Ok(mut scope)) = (
        serde_json::from_slice::<Header>(header),
        serde_json::from_slice::<Scope>(scope),
    ) else {
        return;
    };
    // The driver accepts no other.
    if !DEFINITION.fits(&scope) {
        return;
    }
    let env = Env {
        now: NOW,
        secrets: Data::object(),
        ..Env::default()
    };
    for input in parts.take(4) {
        let Ok(input) = serde_json::from_slice::<Input>(input) else {
            return;
        };
        let mut replayed = scope.clone();
        if let Outcome::Accepted { events, .. } =
            step(&DEFINITION, &header, &mut scope, input, &env)
        {
            for event in &events {
                apply(&mut replayed, event);
            }
            assert_eq!(replayed, scope, "apply gives what step left");
            assert!(DEFINITION.fits(&scope), "{scope:?}");
        }
    }
}

/// `[data of a fork, data, any difference]`
fn differing(json: &[u8]) {
    let Ok((base, data, any)) = serde_json::from_slice::<(Data, Data, Difference)>(json) else {
        return;
    };
    // A branch has its fork's data, in the same memory, and its own.
    let mut branch = base.clone();
    merge_over(&mut branch, &data);
    for data in [&data, &branch] {
        let Some(difference) = Difference::of(&base, data) else {
            continue;
        };
        let written = serde_json::to_vec(&difference).expect("a record is JSON");
        let read: Difference = serde_json::from_slice(&written).expect("it was just written");
        let found = read.apply(&base).expect("it is of this base");
        assert_eq!(found.to_string(), data.to_string());
    }
    // A damaged one may fit or not.
    let _ = any.apply(&base);
}
