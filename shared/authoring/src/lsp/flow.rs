//! Derives the known data in each state from the input schema and the preceding states.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use swirl_documents::source::{Member, Node};

use super::names::{NameKind, referred};
use super::shape::{Shape, Step, addition, path, result};

/// The maximum number of consecutive states with replacing filters that are followed.
const FILTERS_MAX: usize = 32;

/// A position in the text: line and character, from 1.
type Spot = (usize, usize);

/// The states of a definition, and the transitions between them.
#[derive(Debug, Default)]
pub struct Flow {
    states: Vec<State>,
    /// The schema of the input, if it is in the text itself.
    input: Shape,
    constants: Shape,
    /// The name of the first state, if the definition states it.
    start: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    name: String,
    begin: Spot,
    last_line: usize,
    /// The indices of the states that lead here.
    before: Vec<usize>,
    /// The names of the states that this one leads to.
    leads: BTreeSet<String>,
    input: Option<String>,
    output: Option<String>,
    puts: Vec<Put>,
    /// The beginning of each action, and the part of the data that it sees.
    actions: Vec<(Spot, Option<String>)>,
    /// The parameter of an iteration, and its list.
    iteration: Option<(String, String)>,
}

/// A value that a state puts into the data.
#[derive(Debug)]
struct Put {
    when: When,
    path: Vec<Step>,
    what: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// With an event, before the actions that wait for it.
    Event,
    /// After the action that begins at this position.
    Action(Spot),
    /// When all work is done.
    End,
    /// When the state is left.
    Output,
}

/// The computed shapes of states whose filters replace the data.
type ComputedShapes = BTreeMap<usize, Shape>;

impl Flow {
    pub fn of(root: &Node) -> Flow {
        let mut flow = Flow {
            start: start(root),
            ..Flow::default()
        };
        if let Some(constants) = root.get("constants") {
            flow.constants = Shape::of_data(constants);
        }
        if let Some(schema) = root.get("dataInputSchema") {
            let schema = schema.get("schema").unwrap_or(schema).to_data();
            flow.input = Shape::of_schema(&Value::from(&schema));
        }
        let members = root.members().unwrap_or_default();
        for (index, member) in members.iter().enumerate() {
            if matches!(member.key(), "states" | "tasks") {
                let next = members.get(index + 1).map(Member::key_line);
                flow.add(member.value(), next.unwrap_or(usize::MAX));
            }
        }
        flow.connect();
        flow
    }

    /// The states in a list that ends before a line.
    fn add(&mut self, list: &Node, end: usize) {
        let items = list.items().unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let next = items.get(index + 1).map_or(end, Node::line);
            let mut state = State {
                begin: (item.line(), item.column()),
                last_line: item.line().max(next.saturating_sub(1)),
                ..State::default()
            };
            state.read(item);
            self.states.push(state);
        }
    }

    fn connect(&mut self) {
        let names = self.states.iter().enumerate();
        let names = names.map(|(index, state)| (state.name.clone(), index));
        let names: BTreeMap<String, usize> = names.collect();
        let mut ways = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate() {
            for name in std::mem::take(&mut state.leads) {
                ways.extend(names.get(&name).map(|next| (index, *next)));
            }
        }
        for (index, next) in ways {
            self.states[next].before.push(index);
        }
    }

    pub fn constants(&self) -> &Shape {
        &self.constants
    }

    /// The shape of the input. `schema` is that of the last definition without errors.
    pub fn input(&self, schema: Option<&Value>) -> Shape {
        let mut input = schema.map(Shape::of_schema).unwrap_or_default();
        input.merge(self.input.clone());
        input
    }

    /// The data that an expression sees at a location, by the names of the surrounding properties, innermost first;
    /// `None` if unknown.
    pub fn seen(&self, at: Spot, keys: &[String], input: &Shape) -> Option<Shape> {
        let index = self.index(at)?;
        let state = &self.states[index];
        let mut found = ComputedShapes::new();
        let key = keys.first()?.as_str();
        let around = keys.get(1).map_or("", String::as_str);
        let outer = |name: &str| keys.iter().any(|key| key == name);
        match (key, around) {
            // The result of an action, or the data of an event.
            ("results" | "dataResultsPath", _)
            | ("data", "eventDataFilter")
            | ("dataOutputPath", "actionDataFilter" | "eventDataFilter") => return None,
            ("input" | "dataInputPath", "stateDataFilter") => {
                return Some(self.arriving(index, input, &mut found));
            }
            _ => {}
        }
        let mut data = self.inside(index, input, &mut found);
        let is_in_action = outer("actions") || outer("action");
        let action = state.actions.iter().rfind(|(begin, _)| *begin <= at);
        let action = action.filter(|_| is_in_action);
        let is_first = key == "inputCollection" || (outer("data") && !outer("produceEvents"));
        let is_there = |put: &Put| match (action, put.when) {
            (Some(_), When::Event) => outer("actions"),
            (Some((begin, _)), When::Action(other)) => other < *begin,
            (Some(_), _) => false,
            (None, When::Output) => around != "stateDataFilter" && !is_first,
            (None, _) => !is_first,
        };
        for put in state.puts.iter().filter(|put| is_there(put)) {
            data.put(&put.path, put.what.clone());
        }
        if let (true, Some((name, list))) = (is_in_action, &state.iteration) {
            let mut items = result(list, &data);
            items = items.at(&[Step::Item]).cloned().unwrap_or_default();
            data.merge(Shape::with(name, items));
        }
        let is_argument = outer("arguments") || outer("functionRef") || outer("eventRef");
        match action {
            Some((_, Some(from))) if is_argument => Some(result(from, &data)),
            _ => Some(data),
        }
    }

    /// The items over which a state iterates, by the parameter's name.
    pub fn item(&self, name: &str, at: Spot, input: &Shape) -> Option<Shape> {
        let index = self.index(at)?;
        let (own, list) = self.states[index].iteration.as_ref()?;
        let data = self.inside(index, input, &mut ComputedShapes::new());
        let list = result(list, &data);
        list.at(&[Step::Item]).filter(|_| own == name).cloned()
    }

    fn index(&self, at: Spot) -> Option<usize> {
        let holds = |state: &State| state.begin <= at && at.0 <= state.last_line;
        self.states.iter().rposition(holds)
    }

    fn is_start(&self, index: usize) -> bool {
        match &self.start {
            Some(name) => self.states[index].name == *name,
            None => index == 0,
        }
    }

    /// The data that arrives in a state.
    fn arriving(&self, index: usize, input: &Shape, found: &mut ComputedShapes) -> Shape {
        let mut data = Shape::default();
        if self.is_start(index) {
            data.merge(input.clone());
        }
        let mut seen = BTreeSet::new();
        let mut left = self.states[index].before.clone();
        while let Some(index) = left.pop() {
            if !seen.insert(index) {
                continue;
            }
            let state = &self.states[index];
            if state.input.is_some() || state.output.is_some() {
                data.merge(self.left_by(index, input, found));
                continue;
            }
            for put in &state.puts {
                data.put(&put.path, put.what.clone());
            }
            if self.is_start(index) {
                data.merge(input.clone());
            }
            left.extend(&state.before);
        }
        data
    }

    /// The data in a state before it has done anything.
    fn inside(&self, index: usize, input: &Shape, found: &mut ComputedShapes) -> Shape {
        let data = self.arriving(index, input, found);
        match &self.states[index].input {
            Some(filter) => result(filter, &data),
            None => data,
        }
    }

    /// The data that a state with filters leaves.
    fn left_by(&self, index: usize, input: &Shape, found: &mut ComputedShapes) -> Shape {
        if let Some(data) = found.get(&index) {
            return data.clone();
        }
        // States that lead back to it, or are too far away, add nothing.
        found.insert(index, Shape::default());
        if found.len() > FILTERS_MAX {
            return Shape::default();
        }
        let mut data = self.inside(index, input, found);
        let state = &self.states[index];
        for put in &state.puts {
            data.put(&put.path, put.what.clone());
        }
        if let Some(filter) = &state.output {
            data = result(filter, &data);
        }
        found.insert(index, data.clone());
        data
    }
}

impl State {
    fn read(&mut self, node: &Node) {
        let word = |key| node.get(key).and_then(Node::as_str);
        word("name").unwrap_or_default().clone_into(&mut self.name);
        let is_inject = word("type").is_some_and(|kind| kind.eq_ignore_ascii_case("inject"));
        if let (true, Some(data)) = (is_inject, node.get("data")) {
            let what = match data.as_str() {
                Some(expression) => result(expression, &Shape::default()),
                None => Shape::of_data(data),
            };
            self.put(When::End, Vec::new(), what);
        }
        if let Some(filter) = node.get("stateDataFilter") {
            self.input = text(filter, &["input", "dataInputPath"]);
            self.output = text(filter, &["output", "dataOutputPath"]);
            // Data that is only extended is not replaced.
            if let Some(added) = self.output.as_deref().and_then(addition) {
                self.output = None;
                self.put(When::Output, Vec::new(), added);
            }
        }
        if let Some(place) = word("outputCollection").and_then(target) {
            self.put(When::End, place, Shape::default());
        }
        if let (Some(name), Some(list)) = (word("iterationParam"), word("inputCollection")) {
            self.iteration = Some((name.to_owned(), list.to_owned()));
        }
        self.collect(node, "", When::End);
    }

    fn put(&mut self, when: When, path: Vec<Step>, what: Shape) {
        self.puts.push(Put { when, path, what });
    }

    /// Collects the values that actions and events below a node put into the data, and the states that are named there.
    fn collect(&mut self, node: &Node, key: &str, when: When) {
        if let (Some(name), Some(NameKind::State)) = (node.as_str(), referred(key)) {
            self.leads.insert(name.to_owned());
        }
        for item in node.items().unwrap_or_default() {
            let mut when = when;
            if key == "actions" {
                when = When::Action((item.line(), item.column()));
                self.action(item);
            }
            self.collect(item, key, when);
        }
        for member in node.members().unwrap_or_default() {
            let value = member.value();
            match member.key() {
                "actionDataFilter" => self.filter(value, "results", "useResults", when),
                "eventDataFilter" => self.filter(value, "data", "useData", When::Event),
                "action" => self.action(value),
                // User data.
                "arguments" | "metadata" => continue,
                "data" if key.is_empty() => continue,
                _ => {}
            }
            self.collect(value, member.key(), when);
        }
    }

    fn action(&mut self, node: &Node) {
        let filter = node.get("actionDataFilter");
        let from = filter.and_then(|filter| text(filter, &["fromStateData"]));
        self.actions.push(((node.line(), node.column()), from));
    }

    /// The value that a filter of results or event data puts into the data.
    fn filter(&mut self, filter: &Node, selects: &str, uses: &str, when: When) {
        if filter.get(uses).and_then(Node::as_bool) == Some(false) {
            return;
        }
        let selected = text(filter, &[selects]);
        let what = selected.map_or_else(Shape::default, |selected| {
            result(&selected, &Shape::default())
        });
        let place = match filter.get("toStateData").and_then(Node::as_str) {
            Some(place) => target(place),
            None => Some(Vec::new()),
        };
        if let Some(place) = place {
            self.put(when, place, what);
        }
    }
}

/// The path that an expression names as a target.
fn target(expression: &str) -> Option<Vec<Step>> {
    path(super::shape::bare(expression))
}

fn text(node: &Node, keys: &[&str]) -> Option<String> {
    let mut found = keys.iter().filter_map(|key| node.get(key)?.as_str());
    found.next().map(str::to_owned)
}

fn start(root: &Node) -> Option<String> {
    let start = root.get("start")?;
    let named = start.get("stateName").unwrap_or(start);
    named.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
start: Order
dataInputSchema: {schema: {properties: {order: {properties: {lines: {items: {properties: {price: {}}}}}}}}}
states:
- name: Set
  type: inject
  data: {rate: {vat: 19}}
  transition: Sum
- name: Order
  type: foreach
  iterationParam: line
  inputCollection: '${ .order.lines }'
  outputCollection: '${ .sums }'
  actions:
  - functionRef: {refName: a}
    actionDataFilter: {results: '${ {gross, net: .n} }', toStateData: '${ .first }'}
  - functionRef: {refName: b, arguments: {x: '${ . }'}}
    actionDataFilter: {fromStateData: '${ .first }', toStateData: .second}
  - {functionRef: c, actionDataFilter: {useResults: false, toStateData: .never}}
  transition: Set
- name: Sum
  type: operation
  stateDataFilter: {output: '${ {kept: .first} }'}
  actions: []
  transition: Last
- {name: Last, type: inject, data: {end: true}, end: true}
";

    fn seen(line: &str, keys: &[&str]) -> String {
        let root = swirl_documents::source::read(TEXT.as_bytes(), &Default::default()).root;
        let flow = Flow::of(&root.unwrap());
        let at = TEXT.lines().position(|one| one.contains(line)).unwrap() + 1;
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let data = flow.seen((at, 20), &keys, &flow.input(None));
        data.map_or_else(
            || "-".to_owned(),
            |data| data.keys().collect::<Vec<_>>().join(" "),
        )
    }

    #[test]
    fn the_known_data_in_each_state() {
        let argument = ["x", "arguments", "functionRef", "actions", "states"];
        assert_eq!(seen("inputCollection", &["inputCollection"]), "order");
        assert_eq!(
            seen("iterationParam", &["data", "produceEvents", "end"]),
            "first order second sums"
        );
        assert_eq!(seen("refName: a", &argument), "line order");
        assert_eq!(seen("refName: b", &argument), "gross net");
        assert_eq!(
            seen("refName: b", &["results", "actionDataFilter", "actions"]),
            "-"
        );
        assert_eq!(seen("rate", &["rate", "data"]), "first order second sums");
        let filter = ["output", "stateDataFilter"];
        assert_eq!(seen("kept", &filter), "first order rate second sums");
        assert_eq!(seen("name: Last", &["end", "data"]), "kept");
        assert_eq!(
            seen("name: Last", &["output", "stateDataFilter"]),
            "end kept"
        );
        assert_eq!(seen("start:", &["start"]), "-");
        let root = swirl_documents::source::read(TEXT.as_bytes(), &Default::default()).root;
        let flow = Flow::of(&root.unwrap());
        let item = flow.item("line", (11, 3), &flow.input(None)).unwrap();
        assert_eq!(item.keys().collect::<Vec<_>>(), ["price"]);
        assert_eq!(flow.item("other", (11, 3), &flow.input(None)), None);
    }

    #[test]
    fn loops_and_odd_documents() {
        for text in [
            "states: [{name: A, transition: A, stateDataFilter: {output: '${ {a: .} }'}}]",
            "states: 7",
            "states: [{name: A}, {name: A, stateDataFilter: 7, actions: {a: [1]}}, 5]\nstart: {}",
            "dataInputSchema: []\nconstants: 7",
        ] {
            let root = swirl_documents::source::read(text.as_bytes(), &Default::default()).root;
            let flow = Flow::of(&root.unwrap());
            flow.seen((1, 12), &["condition".to_owned()], &Shape::default());
        }
    }
}
