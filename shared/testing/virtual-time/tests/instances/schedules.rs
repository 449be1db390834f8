//! Schedules whose definitions change, and processes that stand still.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use swirl_embedded::Embedded;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{
    Changes, DefinitionRecord, Definitions, ExecutionStore, InstanceRecords, Result,
};
use swirl_runtime::Registry;
use swirl_service::Service;
use swirl_virtual_time::{Mock, World};

use crate::fixture;

const SECOND: i64 = 1_000;
const DAY: i64 = 86_400 * SECOND;

fn document(version: &str, schedule: &str) -> String {
    format!(
        "{{id: tick, version: '{version}', specVersion: '0.8', \
         start: {{stateName: A, schedule: {schedule}}}, \
         states: [{{name: A, type: inject, data: {{}}, end: true}}]}}"
    )
}

/// Daily, at this second of the first day.
fn daily(second: i64) -> [String; 2] {
    [
        format!("{{cron: '{second} 0 0 * * ?'}}"),
        format!("R/1970-01-01T00:00:{second:02}Z/PT24H"),
    ]
}

fn deploy(world: &mut World, document: &str) {
    let (service, deployment) = (world.service.clone(), fixture::deployment(document));
    world
        .wait(async move { service.deploy(deployment).await })
        .unwrap();
}

fn delete(world: &mut World, version: &str) {
    let (service, store) = (world.service.clone(), world.store.clone());
    let id = DefinitionId {
        workflow: "tick".into(),
        version: version.into(),
    };
    world
        .wait(async move { service.delete(&*store, &id, true).await })
        .unwrap();
}

fn run(world: &mut World, until: i64) {
    world.run(Vec::new(), Timestamp(until)).unwrap();
    world.clock.set(Timestamp(until));
}

/// Version, instant of the schedule and start of each instance, in seconds.
fn started(world: &mut World) -> Vec<(String, i64, i64)> {
    let all = world.instances().unwrap();
    let mut started: Vec<_> = all
        .iter()
        .map(|one| {
            let header = &one.header;
            let scheduled = header.scheduled_at.unwrap().0 / SECOND;
            let version = header.definition.version.to_string();
            (version, scheduled, header.started_at.0 / SECOND)
        })
        .collect();
    started.sort_by_key(|(_, scheduled, _)| *scheduled);
    started
}

#[test]
fn a_changed_schedule_has_no_time_before_its_deployment() {
    for (first, second) in daily(4).into_iter().zip(daily(8)) {
        let mut world = fixture::world(&[&document("1.0.0", &first)], |_| Mock::Never);
        run(&mut world, 12 * SECOND);
        deploy(&mut world, &document("2.0.0", &second));
        run(&mut world, DAY / 2);
        assert_eq!(started(&mut world), [("1.0.0".to_owned(), 4, 4)]);
        run(&mut world, DAY + 20 * SECOND);
        let next = ("2.0.0".to_owned(), 86_408, 86_408);
        assert_eq!(started(&mut world)[1..], [next], "{second}");
    }
}

#[test]
fn an_older_schedule_has_no_time_while_it_was_not_the_latest() {
    for (first, second) in daily(10).into_iter().zip(daily(4)) {
        let mut world = fixture::world(&[&document("1.0.0", &first)], |_| Mock::Never);
        deploy(&mut world, &document("2.0.0", &second));
        run(&mut world, 14 * SECOND);
        delete(&mut world, "2.0.0");
        run(&mut world, DAY / 2);
        assert_eq!(started(&mut world), [("2.0.0".to_owned(), 4, 4)]);
        run(&mut world, DAY + 20 * SECOND);
        let next = ("1.0.0".to_owned(), 86_410, 86_410);
        assert_eq!(started(&mut world)[1..], [next], "{first}");
    }
}

/// Each check comes a little late. The times stay those of the schedule, and none is left out.
#[test]
fn late_starts_do_not_shift_the_next_ones() {
    let mut world = fixture::world(&[&document("1.0.0", "R/PT1S")], |_| Mock::Never);
    for second in 0..108 {
        world.clock.set(Timestamp(second * SECOND + 40));
        let service = world.service.clone();
        world
            .wait(async move { service.fire_schedules().await })
            .unwrap();
    }
    let scheduled: Vec<i64> = started(&mut world).iter().map(|one| one.1).collect();
    assert_eq!(scheduled, (0..108).collect::<Vec<i64>>());
}

/// Several missed times make one start, and the next one comes at its time.
#[test]
fn missed_times_are_made_up_for_once() {
    let mut world = fixture::world(&[&document("1.0.0", "R/PT10S")], |_| Mock::Never);
    for at in [0, 35_500, 40_000] {
        world.clock.set(Timestamp(at));
        let service = world.service.clone();
        world
            .wait(async move { service.fire_schedules().await })
            .unwrap();
    }
    let scheduled: Vec<i64> = started(&mut world).iter().map(|one| one.1).collect();
    assert_eq!(scheduled, [0, 10, 40]);
}

const REPORT: &str = r#"
id: report
version: "1.0.0"
specVersion: "0.8"
start: {stateName: A, schedule: {cron: "0 0 6 * * ?"}}
functions: [{name: day, type: expression, operation: "{day: $WORKFLOW.scheduledAt[0:10]}"}]
states: [{name: A, type: operation, actions: [{functionRef: day}], end: true}]
"#;

#[test]
fn a_backfilled_report_is_about_another_day_each_time() {
    let mut world = fixture::world(&[REPORT], |_| Mock::Never);
    world.clock.set(Timestamp(5 * DAY));
    let service = world.service.clone();
    let id = DefinitionId {
        workflow: "report".into(),
        version: "1.0.0".into(),
    };
    world.wait(async move {
        let definition = service.registry.get(&id).await.unwrap();
        let period = (Timestamp(0), Timestamp(5 * DAY));
        let filled = service.backfill(&definition, period, false).await.unwrap();
        assert_eq!(filled.unwrap().len(), 5);
    });
    world.run_until_stalled().unwrap();
    let (store, all) = (world.store.clone(), world.instances().unwrap());
    let mut days: Vec<String> = all
        .iter()
        .map(|one| {
            let (store, id) = (store.clone(), one.header.id.clone());
            let instance = world
                .wait(async move { store.instance(&id).await })
                .unwrap();
            let output = instance.unwrap().state.output.unwrap();
            output.get("day").unwrap().to_text()
        })
        .collect();
    days.sort();
    let expected = (1..=5).map(|day| format!("1970-01-0{day}"));
    assert_eq!(days, expected.collect::<Vec<_>>());
}

/// The definitions of a process that read the marks, then stood still.
struct StoodStill {
    store: Arc<Embedded>,
    is_behind: AtomicBool,
}

#[async_trait]
impl Definitions for StoodStill {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        self.store.put(record).await
    }
    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.store.replace(record).await
    }
    async fn replace_if(&self, old: &DefinitionRecord, new: DefinitionRecord) -> Result<bool> {
        self.store.replace_if(old, new).await
    }
    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        self.store.get(id).await
    }
    async fn changes(&self, since: u64) -> Result<Changes> {
        self.store.changes(since).await
    }
    async fn mark(&self, name: &str) -> Result<Option<Timestamp>> {
        self.store.mark(name).await
    }
    async fn marks(&self, names: &[String]) -> Result<Vec<Option<Timestamp>>> {
        match self.is_behind.swap(false, Ordering::Relaxed) {
            true => Ok(vec![None; names.len()]),
            false => {
                let mut marks = Vec::new();
                for name in names {
                    marks.push(self.store.mark(name).await?);
                }
                Ok(marks)
            }
        }
    }
    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        self.store.set_mark(name, at).await
    }
    async fn advance_mark(&self, name: &str, at: Timestamp) -> Result<()> {
        self.store.advance_mark(name, at).await
    }
}

/// The instance of the first time has been removed, so its id no longer shows that it was started.
#[test]
fn a_coordinator_with_an_older_mark_starts_nothing_twice() {
    let definition = document("1.0.0", "R/PT10S");
    let mut world = fixture::world(&[&definition], |_| Mock::Never);
    run(&mut world, 25 * SECOND);
    let all = world.instances().unwrap();
    let first = all.iter().find(|one| one.header.started_at.0 == 0).unwrap();
    let (store, id) = (world.store.clone(), first.header.id.clone());
    world.wait(async move { store.remove(&id).await }).unwrap();
    let before = started(&mut world);
    assert_eq!(before.len(), 2);
    let behind = StoodStill {
        store: world.store.clone(),
        is_behind: AtomicBool::new(true),
    };
    let lower = move |_: &DefinitionRecord| Ok(fixture::deployment(&definition).workflow);
    let registry = Registry::new(Arc::new(behind), Box::new(lower));
    let service = Service {
        registry: Arc::new(registry),
        ..world.service.clone()
    };
    world
        .wait(async move { service.fire_schedules().await })
        .unwrap();
    assert_eq!(started(&mut world), before);
    run(&mut world, 35 * SECOND);
    assert_eq!(started(&mut world).len(), 3, "the mark has not gone back");
}

/// There is no instance whose end the next one could follow, and the definition may be readable again.
#[test]
fn a_start_that_fails_is_followed_by_another() {
    let definition = "{document: {dsl: 1.0.3, namespace: test, name: tick, version: 1.0.0}, \
                      schedule: {after: {seconds: 10}}, do: [{s: {set: {x: 1}}}]}";
    let mut world = fixture::world(&[definition], |_| Mock::Never);
    let lower = |_: &DefinitionRecord| Err("it cannot be read".to_owned());
    let registry = Registry::new(world.store.clone(), Box::new(lower));
    let service = Service {
        registry: Arc::new(registry),
        ..world.service.clone()
    };
    let fired = world.wait(async move { service.fire_schedules().await });
    assert_eq!(fired.unwrap(), 1);
    assert!(started(&mut world).is_empty());
    run(&mut world, 15 * SECOND);
    assert_eq!(started(&mut world), [("1.0.0".to_owned(), 10, 10)]);
}
