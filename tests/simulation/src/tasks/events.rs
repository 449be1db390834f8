//! Events: `emit`, `listen`, and schedules that start with events (DSL 1.0, "Emit", "Listen", "Event Consumption Strategy",
//! "Schedule").

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use serde_json::Value;
use swirl_model::Data;

use super::flow::{Here, Task};
use super::problem::Stop;
use super::values::{self, Vars, condition, expression, transform, validate};
use super::world::{Instance, World, run_instance};

/// An event that came.
pub struct Published {
    pub at: i64,
    pub event: Data,
    /// The instances that consumed it, with the time.
    consumed: Vec<(usize, i64)>,
}

/// Events that start a workflow.
pub struct Starts {
    workflow: String,
    all: bool,
    filters: Vec<Value>,
    /// When a list of them is over, if any number is collected.
    until: Option<Value>,
    read: String,
    filled: Vec<Option<Data>>,
    list: Vec<Data>,
}

impl Starts {
    pub fn of(workflow: &str, document: &Value) -> Option<Starts> {
        let schedule = &document["schedule"];
        let on = schedule.get("on")?;
        let filters = filters_of(on);
        Some(Starts {
            workflow: workflow.to_owned(),
            all: on.get("all").is_some(),
            filled: vec![None; filters.len()],
            filters,
            until: on.get("until").cloned(),
            list: Vec::new(),
            read: schedule["read"].as_str().unwrap_or("envelope").to_owned(),
        })
    }

    /// The input of an instance, once everything is there.
    fn take(&mut self, event: &Data) -> Option<Data> {
        let none = Data::NULL;
        let vars = Vars::new();
        if let Some(until) = &self.until {
            let fits = |filters: &[Value]| {
                let mut filters = filters.iter();
                filters.any(|filter| attributes_fit(filter, event, &none, &vars))
            };
            let is_over = match until.is_object() && fits(&filters_of(until)) {
                true => !self.list.is_empty(),
                false if fits(&self.filters) => {
                    self.list.push(read(&self.read, event));
                    let list = Data::array(self.list.clone());
                    !until.is_object() && condition(until, &list, &vars).unwrap_or(false)
                }
                false => false,
            };
            return is_over.then(|| Data::array(std::mem::take(&mut self.list)));
        }
        let open = (0..self.filters.len()).find(|index| {
            self.filled[*index].is_none()
                && attributes_fit(&self.filters[*index], event, &none, &vars)
        })?;
        if !self.all {
            return Some(Data::array(vec![read(&self.read, event)]));
        }
        self.filled[open] = Some(event.clone());
        let all: Vec<Data> = self.filled.iter().cloned().collect::<Option<_>>()?;
        self.filled.fill(None);
        // Generated events come in the order of the filters.
        Some(Data::array(
            all.iter().map(|event| read(&self.read, event)).collect(),
        ))
    }
}

impl World {
    pub fn publish(self: &Rc<World>, event: Data) {
        self.clock.acts();
        let at = self.clock.now();
        self.events.borrow_mut().push(Published {
            at,
            event: event.clone(),
            consumed: Vec::new(),
        });
        let mut begun = Vec::new();
        for starts in self.starts.borrow_mut().iter_mut() {
            if let Some(input) = starts.take(&event) {
                begun.push((starts.workflow.clone(), input));
            }
        }
        for (workflow, input) in begun {
            let instance = run_instance(self.clone(), workflow, input);
            self.clock
                .spawn(Box::pin(async move { drop(instance.await) }));
        }
    }

    /// Events of one type that are close to each other may come in another order.
    pub fn check_order(&self) {
        let events = self.events.borrow();
        for (index, one) in events.iter().enumerate() {
            let kind = one.event.get("type");
            let mut later = events[index + 1..].iter();
            if later.any(|other| {
                other.event.get("type") == kind && other.at - one.at < self.clock.margin
            }) {
                self.clock
                    .doubt(|| format!("two events of the type {kind:?} at {}", one.at));
            }
        }
    }
}

/// The part of an event that a workflow sees.
fn read(how: &str, event: &Data) -> Data {
    let payload = || event.get("data").unwrap_or_default();
    match how {
        "envelope" => event.clone(),
        "raw" => Data::string(payload().to_string()),
        _ => payload(),
    }
}

fn filters_of(node: &Value) -> Vec<Value> {
    if let Some(one) = node.get("one") {
        return vec![one.clone()];
    }
    let list = node.get("all").or_else(|| node.get("any"));
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// `with`: attributes are equal texts or match as regular expressions; data is equal or fits a condition.
fn attributes_fit(filter: &Value, event: &Data, input: &Data, vars: &Vars) -> bool {
    let members = filter["with"].as_object();
    members.into_iter().flatten().all(|(name, wanted)| {
        let found = event.get(name).unwrap_or_default();
        let text = wanted.as_str().unwrap_or_default();
        let is_expression = text.trim_start().starts_with("${");
        match (name.as_str(), is_expression) {
            ("data", true) => condition(wanted, &found, vars).unwrap_or(false),
            ("data", false) => {
                values::template(wanted, input, vars, false).is_ok_and(|wanted| wanted == found)
            }
            (_, true) => {
                let wanted = values::template(wanted, input, vars, false);
                wanted.is_ok_and(|wanted| wanted.to_text() == found.to_text())
            }
            (_, false) => matches(text, &found.to_text()),
        }
    })
}

/// Generated patterns are a text with one `.*` at its end, and otherwise equal.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}

/// Whether events that came early are kept: one of the correlations is by a plain attribute.
fn is_kept(filter: &Value) -> bool {
    let rules = filter["correlate"].as_object();
    rules.into_iter().flatten().any(|(_, rule)| {
        let from = values::bare(rule["from"].as_str().unwrap_or_default());
        let name = from.strip_prefix('.').unwrap_or_default();
        name != "data" && !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric())
    })
}

/// Whether the task looks at each event itself.
fn offers(node: &Value, filters: &[Value]) -> bool {
    node.get("until").is_some()
        || filters.iter().any(|filter| {
            let with = filter["with"].as_object();
            with.into_iter().flatten().any(|(name, wanted)| {
                name == "data" || wanted.as_str().is_some_and(|text| text.ends_with(".*"))
            }) || filter["correlate"]
                .as_object()
                .into_iter()
                .flatten()
                .any(|(_, rule)| {
                    !is_kept(&serde_json::json!({"correlate": {"one": rule}}))
                        || rule.get("expect").is_none()
                })
        })
}

/// A wait for events.
struct Listening {
    instance: Rc<Instance>,
    own: Vec<Value>,
    stops: Vec<Value>,
    offers: bool,
    /// The number of events when it began.
    begun: usize,
    seen: Vec<usize>,
    filled: Vec<usize>,
    stopped: Vec<usize>,
    keys: Vec<(String, String)>,
}

enum Heard {
    Own(usize, Data),
    Stop(usize),
}

impl Listening {
    /// The next event that fits, if it is there.
    fn next(&mut self, task: &Task, all: bool, stops_all: bool) -> Option<Heard> {
        let world = self.instance.world.clone();
        let count = world.events.borrow().len();
        for index in 0..count {
            if self.seen.contains(&index) {
                continue;
            }
            let (event, at, consumed) = {
                let events = world.events.borrow();
                let one = &events[index];
                (one.event.clone(), one.at, one.consumed.clone())
            };
            let is_early = index < self.begun;
            let mine = consumed
                .iter()
                .any(|(number, _)| *number == self.instance.number);
            let gone = consumed.iter().any(|(_, at)| *at < self.instance.begun);
            if mine && (is_early || !self.offers) || is_early && gone {
                continue;
            }
            let early_ok = |filter: &Value| !is_early || is_kept(filter);
            let stop = (0..self.stops.len()).find(|place| {
                let filter = &self.stops[*place];
                !(stops_all && self.stopped.contains(place))
                    && early_ok(filter)
                    && self.fits(task, filter, &event).is_some()
            });
            let found = match stop {
                Some(place) => Some(Heard::Stop(place)),
                None => (0..self.own.len()).find_map(|place| {
                    let filter = self.own[place].clone();
                    if all && self.filled.contains(&place) || !early_ok(&filter) {
                        return None;
                    }
                    let keys = self.fits(task, &filter, &event)?;
                    self.keys.extend(keys);
                    Some(Heard::Own(place, event.clone()))
                }),
            };
            let is_close = world.clock.now() - at < world.clock.margin;
            if is_early && found.is_none() && is_close {
                let any = self.own.iter().chain(&self.stops);
                if any
                    .clone()
                    .any(|filter| self.fits(task, filter, &event).is_some())
                {
                    world
                        .clock
                        .doubt(|| "an event just before a wait".to_owned());
                }
            }
            if let Some(heard) = found {
                self.seen.push(index);
                let now = world.clock.now();
                let number = self.instance.number;
                world.events.borrow_mut()[index]
                    .consumed
                    .push((number, now));
                world.clock.acts();
                return Some(heard);
            }
        }
        None
    }

    /// The values of correlations that the event brings, if it fits.
    fn fits(&self, task: &Task, filter: &Value, event: &Data) -> Option<Vec<(String, String)>> {
        let vars = task.vars(None, None);
        if !attributes_fit(filter, event, &task.input, &vars) {
            return None;
        }
        let mut keys = Vec::new();
        for (key, rule) in filter["correlate"].as_object().into_iter().flatten() {
            let found = expression(&rule["from"], event, &vars).ok()?;
            if found.is_null() {
                return None;
            }
            let found = found.to_text();
            let known = self.keys.iter().find(|(known, _)| known == key);
            let wanted = match rule.get("expect") {
                Some(expect) => Some(task.template(expect).ok()?.to_text()),
                None => known.map(|(_, value)| value.clone()),
            };
            match wanted {
                Some(wanted) if wanted != found => return None,
                Some(_) => {}
                None => keys.push((key.clone(), found)),
            }
        }
        Some(keys)
    }
}

impl Task {
    pub fn emit(&self) -> std::result::Result<Data, Stop> {
        let with = self.node["emit"]["event"]["with"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let instance = &self.here.scope.instance;
        let about = |name: &str| {
            instance.document["document"][name]
                .as_str()
                .unwrap_or_default()
        };
        let source = format!(
            "/{}/{}/{}",
            about("namespace"),
            about("name"),
            about("version")
        );
        let count = instance.world.events.borrow().len();
        let mut event = Data::object();
        event.set("specversion", Data::string("1.0"));
        event.set("id", Data::string(format!("emitted {count}")));
        event.set("source", Data::string(source));
        for (name, value) in &with {
            let value = self.template(value)?;
            match name.as_str() {
                "data" => event.set(name, value),
                _ => event.set(name, Data::string(value.to_text())),
            }
        }
        instance.world.publish(event.clone());
        Ok(event)
    }

    pub async fn listen(&self) -> std::result::Result<Data, Stop> {
        let listen = &self.node["listen"];
        let to = &listen["to"];
        let how = listen["read"].as_str().unwrap_or("data").to_owned();
        let until = to.get("until");
        let stops = until.filter(|until| until.is_object());
        let test = until.filter(|until| !until.is_object());
        let (all, stops_all) = (
            to.get("all").is_some(),
            stops.is_some_and(|stops| stops.get("all").is_some()),
        );
        let own = match to.get("any").and_then(Value::as_array) {
            Some(any) if any.is_empty() => vec![serde_json::json!({"with": {}})],
            _ => filters_of(to),
        };
        let stops = stops.map(filters_of).unwrap_or_default();
        let instance = self.here.scope.instance.clone();
        let world = instance.world.clone();
        let each = self.node.get("foreach");
        let mut listening = Listening {
            begun: world.events.borrow().len(),
            offers: offers(to, &own),
            instance,
            own,
            stops,
            seen: Vec::new(),
            filled: Vec::new(),
            stopped: Vec::new(),
            keys: Vec::new(),
        };
        let (mut consumed, mut outputs) = (Vec::new(), Vec::new());
        loop {
            let heard = poll_fn(|_| match listening.next(self, all, stops_all) {
                Some(heard) => Poll::Ready(heard),
                None => {
                    for (at, event) in world.planned.borrow().iter() {
                        let mut any = listening.own.iter().chain(&listening.stops);
                        if any.any(|filter| listening.fits(self, filter, event).is_some()) {
                            world.clock.due(*at);
                        }
                    }
                    Poll::Pending
                }
            });
            let (place, event) = match heard.await {
                Heard::Own(place, event) => (place, event),
                Heard::Stop(place) => {
                    listening.stopped.push(place);
                    if !stops_all || listening.stopped.len() == listening.stops.len() {
                        break;
                    }
                    continue;
                }
            };
            listening.filled.push(place);
            let value = read(&how, &event);
            consumed.push(value.clone());
            if let Some(each) = each {
                let output = self.for_event(each, value, consumed.len() - 1).await?;
                outputs.push(output);
            }
            let is_over = match test {
                Some(test) => {
                    let list = Data::array(consumed.clone());
                    condition(test, &list, &self.vars(None, None))?
                }
                None if !listening.stops.is_empty() => false,
                None if all => listening.filled.len() == listening.own.len(),
                None => true,
            };
            if is_over {
                break;
            }
        }
        Ok(Data::array(match each {
            Some(_) => outputs,
            None => consumed,
        }))
    }

    /// `foreach`: the output for an event.
    async fn for_event(
        &self,
        each: &Value,
        value: Data,
        index: usize,
    ) -> std::result::Result<Data, Stop> {
        let name =
            |key: &str, default: &'static str| each[key].as_str().unwrap_or(default).to_owned();
        let here: Here = self.here.inside("foreach/do").with(vec![
            (&name("item", "item"), value.clone()),
            (&name("at", "index"), Data::int(index as i64)),
        ]);
        let own: Vars = here.vars[self.here.vars.len()..].to_vec();
        let raw = match each.get("do") {
            Some(tasks) => here.list(tasks.clone(), self.input.clone()).await?.data,
            None => value,
        };
        let loose = self.here.loose();
        let with = |mut vars: Vars| {
            vars.extend(own.iter().cloned());
            vars
        };
        let mut output = raw.clone();
        if let Some(template) = each["output"].get("as") {
            output = transform(template, &raw, &with(self.vars(Some(&raw), None)), loose)?;
        }
        validate(&each["output"], &output)?;
        if let Some(template) = each["export"].get("as") {
            let vars = with(self.vars(Some(&raw), Some(&output)));
            let context = transform(template, &output, &vars, loose)?;
            *self.here.scope.context.borrow_mut() = context;
        }
        Ok(output)
    }
}
