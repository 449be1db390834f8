//! Lists of tasks, and what all tasks have (DSL 1.0, "Task", "Data Flow", "Flow Directive", "Extension").

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use swirl_model::{Data, data};

use super::clock::{Boxed, Clock};
use super::problem::{Problem, Stop};
use super::values::{self, Vars, condition, transform, validate};
use super::world::Instance;

/// An instance or a branch, which has a context of its own.
pub struct Scope {
    pub instance: Rc<Instance>,
    pub context: RefCell<Data>,
    /// How often each service was asked the same.
    pub likes: RefCell<BTreeMap<(String, String), usize>>,
}

impl Scope {
    pub fn new(instance: Rc<Instance>, context: Data) -> Rc<Scope> {
        Rc::new(Scope {
            instance,
            context: RefCell::new(context),
            likes: RefCell::default(),
        })
    }
}

/// The way on from a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// The next task of the list.
    Next,
    To(String),
    /// The list ends.
    Exit,
    /// The workflow ends.
    End,
}

impl Way {
    pub fn of(node: Option<&Value>) -> Way {
        match node.and_then(Value::as_str) {
            None | Some("continue") => Way::Next,
            Some("exit") => Way::Exit,
            Some("end") => Way::End,
            Some(name) => Way::To(name.to_owned()),
        }
    }
}

/// The end of a list.
pub struct Listed {
    pub data: Data,
    /// A task said `exit`.
    pub is_left: bool,
}

/// Where a task stands, and what it sees.
#[derive(Clone)]
pub struct Here {
    pub scope: Rc<Scope>,
    pub vars: Vars,
    /// The place in the document.
    pub path: String,
    /// The task whose errors these are: the call of a function, an extended task.
    pub of: Option<String>,
    /// `$task` in an extension.
    pub extended: Option<Data>,
    /// In a function or in an extension: nothing extends its tasks.
    pub inner: bool,
}

/// A task that runs.
pub struct Task {
    pub here: Here,
    pub name: String,
    pub node: Value,
    pub raw: Data,
    pub input: Data,
}

type Done<T> = std::result::Result<T, Stop>;

impl Here {
    pub fn clock(&self) -> Rc<Clock> {
        self.scope.instance.world.clock.clone()
    }

    pub fn loose(&self) -> bool {
        self.scope.instance.document["evaluate"]["mode"] == "loose"
    }

    /// A definition in `use`, or the value itself.
    pub fn reused(&self, table: &str, node: &Value) -> Value {
        match node.as_str() {
            Some(name) => self.scope.instance.document["use"][table][name].clone(),
            None => node.clone(),
        }
    }

    /// The same, further inside.
    pub fn inside(&self, path: &str) -> Here {
        Here {
            path: format!("{}/{path}", self.path),
            ..self.clone()
        }
    }

    pub fn with(&self, vars: Vec<(&str, Data)>) -> Here {
        let mut here = self.clone();
        let vars = vars
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        here.vars.extend(vars);
        here
    }

    /// The place that errors name.
    pub fn place(&self) -> String {
        self.of.clone().unwrap_or_else(|| self.path.clone())
    }

    pub fn list(self, tasks: Value, input: Data) -> Boxed<Done<Listed>> {
        Box::pin(async move {
            let tasks = tasks.as_array().cloned().unwrap_or_default();
            let name_of = |task: &Value| {
                let members = task.as_object();
                members
                    .and_then(|it| it.keys().next().cloned())
                    .unwrap_or_default()
            };
            let (mut data, mut index) = (input, 0);
            while let Some(task) = tasks.get(index) {
                let name = name_of(task);
                let here = self.inside(&format!("{index}/{name}"));
                let (output, way) = here.task(name.clone(), task[&name].clone(), data).await?;
                data = output;
                index = match way {
                    Way::Next => index + 1,
                    Way::To(to) => tasks
                        .iter()
                        .position(|it| name_of(it) == to)
                        .unwrap_or(tasks.len()),
                    Way::Exit => {
                        let is_left = true;
                        return Ok(Listed { data, is_left });
                    }
                    Way::End => {
                        let context = self.scope.context.borrow().clone();
                        return Err(Stop::End(data, context));
                    }
                };
            }
            Ok(Listed {
                data,
                is_left: false,
            })
        })
    }

    pub fn task(self, name: String, node: Value, raw: Data) -> Boxed<Done<(Data, Way)>> {
        let place = self.place();
        Box::pin(async move {
            self.clock().acts();
            let mut task = Task {
                here: self,
                name,
                node,
                input: raw.clone(),
                raw,
            };
            let done = task.run().await;
            done.map_err(|stop| match stop {
                Stop::Fail(problem) => Stop::Fail(problem.at(&place)),
                end => end,
            })
        })
    }
}

impl Task {
    /// The variables of expressions.
    pub fn vars(&self, raw_output: Option<&Data>, output: Option<&Data>) -> Vars {
        let here = &self.here;
        let instance = &here.scope.instance;
        let task = here
            .extended
            .clone()
            .unwrap_or_else(|| self.shown(raw_output));
        let mut workflow = Data::object();
        workflow.set("input", instance.input.clone());
        workflow.set("definition", Data::from((*instance.document).clone()));
        let mut vars = vec![
            ("context".to_owned(), here.scope.context.borrow().clone()),
            ("input".to_owned(), self.input.clone()),
            ("output".to_owned(), output.cloned().unwrap_or_default()),
            ("task".to_owned(), task),
            ("workflow".to_owned(), workflow),
            ("runtime".to_owned(), data!({"name": "swirl"})),
        ];
        vars.extend(here.vars.iter().cloned());
        vars
    }

    /// `$task`.
    pub fn shown(&self, raw_output: Option<&Data>) -> Data {
        let mut task = Data::object();
        task.set("name", Data::string(&*self.name));
        task.set("reference", Data::string(&*self.here.path));
        task.set("definition", Data::from(self.node.clone()));
        task.set("input", self.raw.clone());
        if let Some(output) = raw_output {
            task.set("output", output.clone());
        }
        task
    }

    pub fn template(&self, node: &Value) -> values::Result<Data> {
        values::template(node, &self.input, &self.vars(None, None), self.here.loose())
    }

    async fn run(&mut self) -> Done<(Data, Way)> {
        let node = self.node.clone();
        if let Some(test) = node.get("if")
            && !condition(test, &self.raw, &self.vars(None, None))?
        {
            return Ok((self.raw.clone(), Way::Next));
        }
        let part = &node["input"];
        validate(part, &self.raw)?;
        if let Some(from) = part.get("from") {
            self.input = transform(from, &self.raw, &self.vars(None, None), self.here.loose())?;
        }
        let timeout = node.get("timeout");
        let timeout = timeout.map(|it| self.here.reused("timeouts", it));
        let clock = self.here.clock();
        let deadline = timeout.map(|it| clock.now() + values::millis(&it["after"]));
        let copy = Task {
            here: self.here.clone(),
            name: self.name.clone(),
            node: self.node.clone(),
            raw: self.raw.clone(),
            input: self.input.clone(),
        };
        // An error inside has a place of its own, so a timeout is that of this task.
        let work: Boxed<Done<(Data, Way)>> = Box::pin(async move { copy.extended_work().await });
        match clock.within(deadline, work).await {
            Some(done) => done,
            None => Err(Problem::timeout().into()),
        }
    }

    /// The task between its extensions, and what becomes of its output.
    async fn extended_work(self) -> Done<(Data, Way)> {
        let mut applied = Vec::new();
        let mut skipped = None;
        let all = self.here.scope.instance.document["use"]["extensions"].clone();
        let all = all.as_array().cloned().unwrap_or_default();
        for (index, item) in all.iter().enumerate() {
            let Some((_, extension)) = item.as_object().and_then(|it| it.iter().next()) else {
                continue;
            };
            let extends = match extension["extend"].as_str() {
                Some("all") => true,
                Some("composite") => self.kind() == "do",
                word => word == Some(self.kind()),
            };
            if self.here.inner || !extends {
                continue;
            }
            if let Some(when) = extension.get("when")
                && !condition(when, &self.input, &self.vars(None, None))?
            {
                continue;
            }
            applied.push((index, item.clone()));
            if let Some(before) = extension.get("before") {
                let shown = self.shown(None);
                let here = self.extension(index, item, "before", shown);
                let listed = here.list(before.clone(), self.input.clone()).await?;
                if listed.is_left {
                    skipped = Some(listed.data);
                    break;
                }
            }
        }
        let (raw_output, way) = match skipped {
            Some(output) => (output, Way::of(self.node.get("then"))),
            None => {
                let (output, way) = self.work().await?;
                for (index, item) in &applied {
                    let after = item
                        .as_object()
                        .and_then(|it| it.values().next()?.get("after"));
                    if let Some(after) = after {
                        let shown = self.shown(Some(&output));
                        let here = self.extension(*index, item, "after", shown);
                        here.list(after.clone(), output.clone()).await?;
                    }
                }
                (output, way)
            }
        };
        self.put_output(raw_output, way)
    }

    fn extension(&self, index: usize, item: &Value, part: &str, shown: Data) -> Here {
        let name = item.as_object().and_then(|it| it.keys().next().cloned());
        let name = name.unwrap_or_default();
        Here {
            scope: self.here.scope.clone(),
            vars: Vec::new(),
            path: format!("/use/extensions/{index}/{name}/{part}"),
            of: Some(self.here.place()),
            extended: Some(shown),
            inner: true,
        }
    }

    fn put_output(self, raw: Data, way: Way) -> Done<(Data, Way)> {
        let (part, loose) = (&self.node["output"], self.here.loose());
        let mut output = raw.clone();
        if let Some(template) = part.get("as") {
            output = transform(template, &raw, &self.vars(Some(&raw), None), loose)?;
        }
        validate(part, &output)?;
        let part = &self.node["export"];
        if let Some(template) = part.get("as") {
            let vars = self.vars(Some(&raw), Some(&output));
            let context = transform(template, &output, &vars, loose)?;
            validate(part, &context)?;
            *self.here.scope.context.borrow_mut() = context;
        } else {
            validate(part, &self.here.scope.context.borrow())?;
        }
        Ok((output, way))
    }

    /// The property that says what the task does.
    pub fn kind(&self) -> &'static str {
        const KINDS: [&str; 12] = [
            "for", "try", "call", "emit", "fork", "listen", "raise", "run", "set", "switch",
            "wait", "do",
        ];
        let mut kinds = KINDS.into_iter();
        kinds
            .find(|kind| self.node.get(kind).is_some())
            .unwrap_or("do")
    }
}
