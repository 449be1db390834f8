//! Instances and what is around them: documents, events, outcomes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use swirl_model::{CloudEvent, Data};

use super::clock::{Boxed, Clock};
use super::events::{Published, Starts};
use super::flow::{Here, Scope};
use super::problem::{Problem, Stop};
use super::values::{self, Vars, millis, transform, validate};
use crate::reference::Outcome;

pub struct World {
    pub clock: Rc<Clock>,
    documents: BTreeMap<String, Rc<Value>>,
    outcomes: RefCell<Vec<Outcome>>,
    /// All events so far, in the order in which they came.
    pub events: RefCell<Vec<Published>>,
    pub starts: RefCell<Vec<Starts>>,
    /// The events of the plan, with the times at which they come.
    pub planned: RefCell<Vec<(i64, Data)>>,
    instances: Cell<usize>,
}

pub struct Instance {
    pub world: Rc<World>,
    pub document: Rc<Value>,
    pub input: Data,
    pub number: usize,
    pub begun: i64,
}

/// The expected result of the runs of a case.
pub struct Expected {
    pub outcomes: Vec<Outcome>,
    /// Why the outcome depends on the order of things that are too close to each other.
    pub undecided: Option<String>,
}

/// Runs a workflow, and everything that follows from it.
pub fn expected(
    documents: &[Value],
    workflow: &str,
    input: Data,
    events: Vec<(i64, CloudEvent)>,
    margin: i64,
) -> Expected {
    let named = documents.iter().map(|document| {
        let text = |name: &str| document["document"][name].as_str().unwrap_or_default();
        let id = format!("{}.{}", text("namespace"), text("name"));
        (id, Rc::new(document.clone()))
    });
    let world = Rc::new(World {
        clock: Clock::new(margin),
        documents: named.collect(),
        outcomes: RefCell::default(),
        events: RefCell::default(),
        starts: RefCell::default(),
        planned: RefCell::default(),
        instances: Cell::new(0),
    });
    for (name, document) in &world.documents {
        let starts = Starts::of(name, document);
        world.starts.borrow_mut().extend(starts);
    }
    for (at, event) in events {
        let event = event.to_data();
        world.planned.borrow_mut().push((at, event.clone()));
        let world = world.clone();
        world.clock.clone().spawn(Box::pin(async move {
            world.clock.sleep_until(at).await;
            world.publish(event);
        }));
    }
    let first = run_instance(world.clone(), workflow.to_owned(), input);
    world
        .clock
        .spawn(Box::pin(async move { drop(first.await) }));
    world.clock.run();
    world.check_order();
    world.check_ends();
    let undecided = world.clock.doubts();
    Expected {
        outcomes: world.outcomes.take(),
        undecided,
    }
}

impl World {
    /// Two kinds of ends are beyond this interpreter.
    fn check_ends(&self) {
        let outcomes = self.outcomes.borrow();
        if outcomes.len() < self.instances.get() {
            self.clock.doubt(|| "an instance waits for good".to_owned());
        }
        // A faulted instance keeps what its branches have begun, for a retry. Here that is dropped.
        let faulted = |at| {
            outcomes
                .iter()
                .any(|it| it.status == "faulted" && it.at == at)
        };
        if outcomes
            .iter()
            .any(|it| it.status == "cancelled" && faulted(it.at))
        {
            self.clock
                .doubt(|| "a sub-workflow of a faulted instance goes on".to_owned());
        }
    }
}

/// Runs an instance to its end.
pub async fn run_instance(
    world: Rc<World>,
    workflow: String,
    input: Data,
) -> Result<Data, Problem> {
    let Some(document) = world.documents.get(&workflow).cloned() else {
        return Err(Problem::own("configuration", 400));
    };
    world.instances.set(world.instances.get() + 1);
    let number = world.instances.get();
    let begun = world.clock.now();
    let instance = Rc::new(Instance {
        world: world.clone(),
        document,
        input,
        number,
        begun,
    });
    let mut ending = Ending {
        world,
        workflow,
        outcome: None,
    };
    let outcome = instance.run().await;
    ending.outcome = Some(outcome.clone());
    outcome
}

/// Notes the outcome of an instance, also of one that is cancelled.
struct Ending {
    world: Rc<World>,
    workflow: String,
    outcome: Option<Result<Data, Problem>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let (status, output, error) = match self.outcome.take() {
            None => ("cancelled", Data::NULL, None),
            Some(Ok(output)) => ("completed", output, None),
            Some(Err(problem)) => ("faulted", Data::NULL, Some(problem.shown())),
        };
        self.world.outcomes.borrow_mut().push(Outcome {
            workflow: self.workflow.clone(),
            status,
            output,
            error,
            at: self.world.clock.now(),
            warned: 0,
        });
    }
}

impl Instance {
    fn vars(&self, context: Data) -> Vars {
        let mut workflow = Data::object();
        workflow.set("input", self.input.clone());
        workflow.set("definition", Data::from((*self.document).clone()));
        vec![
            ("context".to_owned(), context),
            ("workflow".to_owned(), workflow),
        ]
    }

    async fn run(self: &Rc<Instance>) -> Result<Data, Problem> {
        let clock = self.world.clock.clone();
        let document = self.document.clone();
        let timeout = document.get("timeout").map(|node| match node.as_str() {
            Some(name) => document["use"]["timeouts"][name].clone(),
            None => node.clone(),
        });
        let deadline = timeout.map(|it| clock.now() + millis(&it["after"]));
        let instance = self.clone();
        let work: Boxed<Result<Data, Problem>> = Box::pin(async move { instance.work().await });
        let done = clock.within(deadline, work).await;
        let done = done.unwrap_or_else(|| Err(Problem::timeout()));
        done.map_err(|problem| problem.at("/"))
    }

    async fn work(self: Rc<Instance>) -> Result<Data, Problem> {
        let document = self.document.clone();
        let loose = document["evaluate"]["mode"] == "loose";
        let mut data = self.input.clone();
        let part = &document["input"];
        validate(part, &data)?;
        if let Some(from) = part.get("from") {
            data = transform(from, &data, &self.vars(Data::object()), loose)?;
        }
        let scope = Scope::new(self.clone(), Data::object());
        let here = Here {
            scope: scope.clone(),
            vars: Vec::new(),
            path: "/do".to_owned(),
            of: None,
            extended: None,
            inner: false,
        };
        let (data, context) = match here.list(document["do"].clone(), data).await {
            Ok(listed) => (listed.data, scope.context.borrow().clone()),
            Err(Stop::End(data, context)) => (data, context),
            Err(Stop::Fail(problem)) => return Err(problem),
        };
        let part = &document["output"];
        let output = match part.get("as") {
            Some(template) => transform(template, &data, &self.vars(context), loose)?,
            None => data,
        };
        values::validate(part, &output)?;
        Ok(output)
    }
}
