//! A suspension whose coordinator died before it reached the sub-workflows (docs/language.md#decision-89).

use swirl_model::event::Event;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_ports::{ExecutionStore, InstanceQueries, Summary};
use swirl_service::Action;
use swirl_virtual_time::{Mock, World};

use crate::fixture;

const TOP: &str = r#"
id: top
version: "1.0.0"
specVersion: "0.8"
states:
  - name: Both
    type: parallel
    branches:
      - {name: waited, actions: [{subFlowRef: middle}]}
      - {name: apart, actions: [{subFlowRef: {workflowId: deep, invoke: async, onParentComplete: continue}}]}
    end: true
"#;
const MIDDLE: &str = r#"
id: middle
version: "1.0.0"
specVersion: "0.8"
states: [{name: Down, type: operation, actions: [{subFlowRef: deep}], end: true}]
"#;
const DEEP: &str = r#"
id: deep
version: "1.0.0"
specVersion: "0.8"
states: [{name: Sleep, type: sleep, duration: PT1H, end: true}]
"#;

/// With the instances of all four definitions: the top, the middle, the one below that, and one that
/// nothing waits for.
fn world() -> World {
    let mut world = fixture::world(&[TOP, MIDDLE, DEEP], |_| Mock::Never);
    let start = fixture::start_of("top");
    let service = world.service.clone();
    world
        .wait(async move { service.start(start).await })
        .unwrap()
        .unwrap();
    world.run_until_stalled().unwrap();
    world
}

/// The suspended instances, by their workflow and whether something waits for them.
fn suspended(world: &mut World) -> Vec<String> {
    let mut found: Vec<String> = world
        .instances()
        .unwrap()
        .iter()
        .filter(|one| one.suspended && one.status == Status::Running)
        .map(|one| {
            let parent = one.header.parent.as_ref();
            let apart = parent.is_some_and(|parent| parent.detached);
            let name = &one.header.definition.workflow;
            format!("{name}{}", if apart { " apart" } else { "" })
        })
        .collect();
    found.sort();
    found
}

fn sweep(world: &mut World) {
    let service = world.service.clone();
    let swept = async move { service.sweep(&service).await };
    world.wait(swept).unwrap();
    world.run_until_stalled().unwrap();
}

fn id_of(all: &[Summary], name: &str) -> InstanceId {
    let mut all = all.iter();
    let found = all.find(|one| &*one.header.definition.workflow == name);
    found.unwrap().header.id.clone()
}

/// A process suspended the child of an instance that had been resumed meanwhile, and then it died.
#[test]
fn a_suspension_that_comes_late_is_undone() {
    let mut world = world();
    let all = world.instances().unwrap();
    let (top, middle) = (id_of(&all, "top"), id_of(&all, "middle"));
    let store = world.store.clone();
    let done = world.wait(async move { store.suspend(&middle, true, Some(&top)).await });
    assert!(done.unwrap().is_some());
    assert_eq!(suspended(&mut world), ["middle"]);
    sweep(&mut world);
    assert_eq!(suspended(&mut world), [""; 0]);
}

/// The same, but then an operator suspended the child itself.
#[test]
fn an_operators_own_suspension_stays() {
    let mut world = world();
    let all = world.instances().unwrap();
    let (top, middle) = (id_of(&all, "top"), id_of(&all, "middle"));
    let (store, service, id) = (world.store.clone(), world.service.clone(), middle.clone());
    let operated = async move {
        store.suspend(&id, true, Some(&top)).await.unwrap();
        service.operate(&id, Action::Suspend).await.unwrap()
    };
    assert!(world.wait(operated));
    sweep(&mut world);
    assert_eq!(suspended(&mut world), ["deep", "middle"]);
}

#[test]
fn the_reconciler_hands_on_what_a_coordinator_left() {
    let mut world = world();
    let all = world.instances().unwrap();
    let (top, middle) = (id_of(&all, "top"), id_of(&all, "middle"));
    for (on, expected) in [(true, &["deep", "middle", "top"][..]), (false, &[])] {
        // Everything that a coordinator does before it dies half-way.
        let (store, id) = (world.store.clone(), top.clone());
        let done = world.wait(async move { store.suspend(&id, on, None).await });
        assert!(done.unwrap().is_some());
        assert_ne!(suspended(&mut world), expected);
        sweep(&mut world);
        assert_eq!(suspended(&mut world), expected);
        let store = world.store.clone();
        let left = world
            .wait(async move { store.unflushed(10).await })
            .unwrap();
        assert_eq!(left, []);
    }

    // The histories name the parent with which each was suspended.
    for one in &all {
        let workflow = &*one.header.definition.workflow;
        let parent = one.header.parent.as_ref();
        let awaits = parent.filter(|parent| !parent.detached);
        let expected = match awaits.map(|parent| parent.scope.instance.to_string()) {
            Some(with) => vec![
                ("suspend".to_owned(), with.clone()),
                ("resume".to_owned(), with),
            ],
            None => Vec::new(),
        };
        let (store, id) = (world.store.clone(), one.header.id.clone());
        let history = world.wait(async move { store.history(&id).await }).unwrap();
        let followed = history.iter().filter_map(|entry| match &entry.event {
            Event::Operated { action, with, .. } => {
                Some((action.to_string(), with.as_ref()?.to_string()))
            }
            _ => None,
        });
        assert_eq!(followed.collect::<Vec<_>>(), expected, "{workflow}");
    }

    // A suspension that has been passed on isn't passed on again, so that an operator may let a part continue.
    let service = world.service.clone();
    let (all, part) = (top.clone(), middle.clone());
    let operated = async move {
        assert!(service.operate(&all, Action::Suspend).await.unwrap());
        service.operate(&part, Action::Resume).await
    };
    assert!(world.wait(operated).unwrap());
    sweep(&mut world);
    assert_eq!(suspended(&mut world), ["top"]);
}
