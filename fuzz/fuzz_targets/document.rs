//! Any bytes as a definition: the reader must not panic, and an accepted definition must compile and
//! begin.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use swirl_engine::{Definition, Env, Input, NewInstance, new_instance, step};
use swirl_model::Data;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
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
    let Ok((header, mut scope)) = new_instance(&definition, InstanceId::new("i"), new, NOW) else {
        return Corpus::Keep;
    };
    let env = Env {
        now: NOW,
        secrets: Data::object(),
        bounds: None,
        room: None,
    };
    for _ in 0..3 {
        let _ = step(&definition, &header, &mut scope, Input::Wake, &env);
    }
    // The timers that it armed, in any order.
    for timer in scope.timers.clone() {
        let env = Env {
            now: timer.due,
            secrets: Data::object(),
            bounds: None,
            room: None,
        };
        let _ = step(
            &definition,
            &header,
            &mut scope,
            Input::Timer { seq: timer.seq },
            &env,
        );
        let _ = step(&definition, &header, &mut scope, Input::Wake, &env);
    }
    Corpus::Keep
});
