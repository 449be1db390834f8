//! The events and outputs that a task keeps while it listens are bounded.

use std::sync::Arc;

use swirl_engine::{Definition, Event, Input, NewInstance};
use swirl_model::error::names;
use swirl_model::instance::EndStatus;
use swirl_model::workflow::*;
use swirl_model::{Data, data};

use crate::rig::{Ended, Make, Rig, seconds};
use crate::{ROOT, slow};

fn task(make: &mut Make, flow: FlowId, kind: StateKind) -> StateId {
    let id = make.state(flow, kind, Some(Next::Leave));
    make.0.states[id.0 as usize].task = Some(Box::default());
    id
}

/// Listens for `e` until a condition holds that never does. With `sleep`, each event takes a minute. It is in a `try` of
/// which the next task is the handler.
fn listening(sleep: bool) -> Make {
    let mut make = Make::new();
    make.0.tasks = Some(Box::default());
    let (body, handler) = (make.flow(), make.flow());
    let outer = Try {
        body,
        filter: CaughtError::default(),
        variable: "error".into(),
        when: None,
        except_when: None,
        retry: None,
        handler: Some(handler),
        then: None,
    };
    task(&mut make, ROOT, StateKind::Try(Box::new(outer)));
    let event = make.event("e");
    let never = make.expr("false");
    let each = sleep.then(|| make.flow());
    let listen = Listen {
        source: None,
        stepwise: None,
        to: Consume {
            all: false,
            filters: vec![TaskFilter {
                event,
                ..TaskFilter::default()
            }],
        },
        until: Some(Until::Condition(never)),
        read: EventRead::Data,
        each: each.map(|each| EachEvent {
            item: "item".into(),
            index: "at".into(),
            body: Some(each),
            output: None,
            output_schema: None,
            export: None,
            context_schema: None,
        }),
    };
    task(&mut make, body, StateKind::Listen(Box::new(listen)));
    if let Some(each) = each {
        task(&mut make, each, StateKind::Sleep(seconds(60).unwrap()));
    }
    task(
        &mut make,
        handler,
        StateKind::Inject(data!({"handled": true})),
    );
    make
}

fn rig(make: Make, caught: bool) -> Rig {
    let mut workflow = make.0;
    if let StateKind::Try(outer) = &mut workflow.states[0].kind
        && !caught
    {
        outer.filter.status = Some(1);
    }
    let mut def = Definition::compile(workflow).unwrap();
    Arc::get_mut(&mut def).unwrap().sizes.data_bytes = 240;
    let new = NewInstance {
        input: Data::object(),
        ..NewInstance::default()
    };
    Rig::of(def, new, slow, 0)
}

fn queue(rig: &Rig) -> usize {
    let frame = rig.root().frames.last().unwrap();
    frame.listen.as_ref().unwrap().queue.len()
}

#[test]
fn events_without_room_are_an_error_of_the_task() {
    for sleep in [false, true] {
        let mut rig = rig(listening(sleep), false);
        for at in 1..5 {
            assert_eq!(rig.ended, None, "{at}");
            rig.event("e", at);
        }
        let ended = rig.ended.clone().unwrap();
        assert_eq!(ended.error.as_deref(), Some(names::LIMIT_EXCEEDED));
        assert_eq!(ended.at, 4);
        let fault = rig.root().fault.as_ref().unwrap();
        assert!(fault.message.contains("240 bytes"), "{fault:?}");
        assert_eq!(fault.state.as_deref(), Some("S1"));
    }
}

/// The task inside it is left, whatever it would catch.
#[test]
fn a_task_around_may_catch_it() {
    let mut rig = rig(listening(true), true);
    (1..5).for_each(|at| rig.event("e", at));
    let done = Ended {
        status: EndStatus::Completed,
        output: Some(data!({"handled": true})),
        error: None,
        at: 4,
    };
    assert_eq!(rig.ended, Some(done));
}

/// After a retry the queue is worked off before the task listens again, since it would be full at once.
#[test]
fn a_retry_works_off_the_queue_first() {
    let mut rig = rig(listening(true), false);
    (1..5).for_each(|at| rig.event("e", at));
    assert_eq!(queue(&rig), 2);
    rig.operate(Input::Retry, 10);
    let frame = rig.root().frames.last().unwrap();
    let listen = frame.listen.as_ref().unwrap();
    assert_eq!((listen.index, listen.queue.len()), (3, 0));
    assert!(listen.wait.is_some(), "it listens again");
    let taken = |event: &&Event| matches!(event, Event::EventConsumed { .. });
    assert_eq!(rig.history.iter().filter(taken).count(), 3);
}

/// Its record may be what the store refuses.
#[test]
fn a_cancellation_leaves_the_queue_behind() {
    let mut rig = rig(listening(true), false);
    (1..4).for_each(|at| rig.event("e", at));
    assert_eq!(queue(&rig), 2);
    let status = EndStatus::Cancelled;
    rig.operate(Input::Cancel { status }, 4);
    assert!(rig.root().frames.is_empty());
    assert_eq!(rig.ended.map(|ended| ended.status), Some(status));
}
