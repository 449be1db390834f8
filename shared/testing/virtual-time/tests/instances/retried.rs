//! An operator's retry of a sub-workflow that its parent failed with (docs/language.md#decision-89).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use swirl_model::error::names;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{Filter, InstanceQueries, Summary};
use swirl_service::Action;
use swirl_virtual_time::{Act, Mock, Which, World};

use crate::fixture;

const PARENT: &str = r#"{"id": "order", "specVersion": "0.8", "version": "1", "states": [
    {"name": "Both", "type": "parallel", "branches": [{"name": "pay", "actions": [{"subFlowRef": "payment"}]}],
     "HANDLER": 0, "end": true}]}"#;
const CHILD: &str = r#"{"id": "payment", "specVersion": "0.8", "version": "1",
    "functions": [{"name": "charge", "operation": "a.json#charge"}, {"name": "book", "operation": "a.json#book"}],
    "states": [{"name": "A", "type": "operation", "end": true, "actions": [
        {"functionRef": "charge"}, {"functionRef": "book"}]}]}"#;
const HANDLED: &str = r#""onErrors": [{"errorRef": "all", "end": true}]"#;

struct Run {
    world: World,
    charged: Arc<AtomicU32>,
}

impl Run {
    /// `book` fails this many times.
    fn new(handled: bool, failures: u32) -> Run {
        let charged = Arc::new(AtomicU32::new(0));
        let (charges, books) = (charged.clone(), AtomicU32::new(0));
        let answer = move |call: &swirl_ports::CallRequest| {
            let result = match &*call.function.name {
                "charge" => {
                    charges.fetch_add(1, Ordering::Relaxed);
                    Ok(Data::object())
                }
                _ if books.fetch_add(1, Ordering::Relaxed) < failures => {
                    Err(WorkflowError::new(names::FUNCTION_ERROR, "not today"))
                }
                _ => Ok(Data::object()),
            };
            Mock::Answer {
                after_ms: 10,
                result,
            }
        };
        let parent = match handled {
            true => PARENT.replace(r#""HANDLER": 0"#, HANDLED).replace(
                r#""version": "1","#,
                r#""version": "1", "errors": [{"name": "all", "code": "*"}],"#,
            ),
            false => PARENT.replace(r#""HANDLER": 0, "#, ""),
        };
        let mut world = fixture::world(&[CHILD, &parent], answer);
        fixture::run(&mut world, "order", Timestamp(1_000));
        Run { world, charged }
    }

    fn instance(&mut self, workflow: &str) -> Summary {
        let filter = Filter {
            workflow: Some(workflow.to_owned()),
            limit: 10,
            ..Filter::default()
        };
        let store = self.world.store.clone();
        let found = self.world.wait(async move { store.list(&filter).await });
        let [one] = &found.unwrap()[..] else {
            panic!("there is more than one {workflow}")
        };
        one.clone()
    }

    fn statuses(&mut self) -> (Status, Status) {
        (
            self.instance("order").status,
            self.instance("payment").status,
        )
    }

    fn operate(&mut self, workflow: &str, action: Action, until: i64) {
        let act = Act::Operate {
            name: "it".to_owned(),
            which: Which::Name(self.instance(workflow).header.id.to_string()),
            action,
        };
        let now = swirl_ports::Clock::now(&*self.world.clock);
        self.world.run(vec![(now, act)], Timestamp(until)).unwrap();
    }
}

#[test]
fn the_parent_goes_on_with_its_sub_workflow() {
    let mut run = Run::new(false, 2);
    assert_eq!(run.statuses(), (Status::Faulted, Status::Faulted));
    // It fails again, and so does the parent.
    run.operate("payment", Action::Retry, 2_000);
    assert_eq!(run.statuses(), (Status::Faulted, Status::Faulted));
    run.operate("payment", Action::Retry, 3_000);
    assert_eq!(run.statuses(), (Status::Completed, Status::Completed));
    assert_eq!(run.charged.load(Ordering::Relaxed), 1);
}

#[test]
fn what_failed_in_the_sub_workflow_is_skipped() {
    let mut run = Run::new(false, 2);
    run.operate("payment", Action::Skip(Data::object()), 2_000);
    assert_eq!(run.statuses(), (Status::Completed, Status::Completed));
    assert_eq!(run.charged.load(Ordering::Relaxed), 1);
}

#[test]
fn a_retry_of_the_parent_is_one_of_the_sub_workflow() {
    let mut run = Run::new(false, 1);
    run.operate("order", Action::Retry, 2_000);
    assert_eq!(run.statuses(), (Status::Completed, Status::Completed));
    assert_eq!(run.charged.load(Ordering::Relaxed), 1);
}

#[test]
fn a_parent_that_handled_the_failure_takes_no_other_result() {
    let mut run = Run::new(true, 1);
    assert_eq!(run.statuses(), (Status::Completed, Status::Faulted));
    run.operate("payment", Action::Retry, 2_000);
    assert_eq!(run.statuses(), (Status::Completed, Status::Faulted));
}
