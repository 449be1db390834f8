//! What the tasks around the current one hold is bounded.

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance};
use swirl_model::error::names;
use swirl_model::instance::EndStatus;
use swirl_model::workflow::*;
use swirl_model::{Data, data};

use crate::rig::{Make, Rig};
use crate::{ROOT, slow};

/// Loops within each other over a list of one text of 100 letters, which holds twice of that.
fn loops(depth: usize) -> Rig {
    let mut make = Make::new();
    make.0.tasks = Some(Box::default());
    let mut flow = ROOT;
    let task = |make: &mut Make, flow: FlowId, kind: StateKind| {
        let id = make.state(flow, kind, Some(Next::Leave));
        make.0.states[id.0 as usize].task = Some(Box::default());
    };
    for _ in 0..depth {
        let body = make.flow();
        let each = For {
            items: Template::Literal(data!([("x".repeat(100))])),
            item: "item".into(),
            index: "index".into(),
            test: None,
            body,
        };
        task(&mut make, flow, StateKind::For(each));
        flow = body;
    }
    task(&mut make, flow, StateKind::Inject(data!({"done": true})));
    let mut def = Definition::compile(make.0).unwrap();
    Arc::get_mut(&mut def).unwrap().sizes.data_bytes = 240;
    let new = NewInstance {
        input: Data::object(),
        ..NewInstance::default()
    };
    Rig::of(def, new, slow, 0)
}

#[test]
fn a_list_that_does_not_fit_is_an_error_of_its_task() {
    let ended = loops(2).run().unwrap();
    assert_eq!(ended.status, EndStatus::Completed, "{ended:?}");
    let mut rig = loops(3);
    let ended = rig.run().unwrap();
    assert_eq!(ended.error.as_deref(), Some(names::LIMIT_EXCEEDED));
    let fault = rig.root().fault.as_ref().unwrap();
    assert!(fault.message.contains("more than 480 bytes"), "{fault:?}");
    assert_eq!(fault.state.as_deref(), Some("S2"));
}
