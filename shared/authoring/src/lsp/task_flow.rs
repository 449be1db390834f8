//! Derives the known data at each task of DSL 1.0 from the schema of the input and the tasks before it.

use serde_json::Value;
use swirl_documents::source::Node;

use super::entries::{ObjectMember, entries, items};
use super::shape::{Shape, Step, result};

/// A position in the text: line and character, from 1.
type Spot = (usize, usize);

/// How often a list is followed, so that what goes back by `then` arrives.
const ROUNDS_MAX: usize = 3;

/// How many tasks are followed, each as often as its list.
const STEPS_MAX: usize = 5_000;

/// The depth of lists in lists.
const DEPTH_MAX: usize = 16;

/// The tasks of a document.
#[derive(Debug)]
pub struct TaskFlow(Node);

/// The data of a document.
#[derive(Debug, Default)]
struct Followed {
    tasks: Vec<AtTask>,
    /// The input of the workflow, as it is given and as it is transformed.
    given: Shape,
    input: Shape,
    output: Shape,
    context: Shape,
    steps: usize,
}

/// What is known at a task.
#[derive(Debug)]
struct AtTask {
    name: String,
    begin: Spot,
    last_line: usize,
    /// The data before and after its `input.from`, and before and after its `output.as`.
    given: Shape,
    input: Shape,
    result: Shape,
    output: Shape,
    /// The variables that tasks in it see.
    variables: Vec<(String, Shape)>,
}

/// Ways out of a list.
#[derive(Default)]
struct Left {
    /// At its end, or by `exit`.
    list: Shape,
    /// By `end`.
    all: Shape,
}

impl TaskFlow {
    pub fn of(root: Node) -> TaskFlow {
        TaskFlow(root)
    }

    /// The data that an expression sees at a location, by the names of the surrounding properties, innermost first;
    /// `None` if unknown. `schema` is the input's of the last definition without errors, if it is in another file.
    pub fn seen(&self, at: Spot, keys: &[String], schema: Option<&Value>) -> Option<Shape> {
        Followed::of(&self.0, schema).seen(at, keys)
    }

    /// The value of a variable, by its name without `$`.
    pub fn variable(&self, name: &str, at: Spot, schema: Option<&Value>) -> Option<Shape> {
        Followed::of(&self.0, schema).variable(name, at)
    }
}

impl Followed {
    fn of(root: &Node, schema: Option<&Value>) -> Followed {
        let mut data = Followed::default();
        let input = root.get("input");
        data.given = schema.map(Shape::of_schema).unwrap_or_default();
        data.given.merge(of_schema(input));
        data.input = transformed(input, "from", &data.given);
        for (key, value, last_line) in entries(root, usize::MAX) {
            match key.key {
                "do" => {
                    let mut left = Left::default();
                    let input = data.input.clone();
                    data.list(value, last_line, &input, &mut left, 0);
                    left.list.merge(left.all);
                    data.output = left.list;
                }
                "use" => data.functions(value, last_line),
                _ => {}
            }
        }
        data
    }

    /// Functions are tasks, whose input their schemas describe.
    fn functions(&mut self, used: &Node, last_line: usize) {
        let functions = entries(used, last_line).filter(|(key, ..)| key.key == "functions");
        for (_, functions, last_line) in functions {
            for function in entries(functions, last_line) {
                let given = of_schema(function.1.get("input"));
                self.task(&function, &given, &mut Left::default(), 0);
            }
        }
    }

    /// Follows a list of tasks.
    fn list(
        &mut self,
        list: &Node,
        last_line: usize,
        given: &Shape,
        left: &mut Left,
        depth: usize,
    ) {
        let tasks = items(list, last_line).flat_map(|(item, last_line)| entries(item, last_line));
        let tasks: Vec<_> = tasks.collect();
        if depth >= DEPTH_MAX {
            return;
        }
        let place_of = |name: &str| tasks.iter().position(|(key, ..)| key.key == name);
        let mut arriving = vec![Shape::default(); tasks.len()];
        if let Some(first) = arriving.first_mut() {
            first.merge(given.clone());
        } else {
            left.list.merge(given.clone());
        }
        for round in 1..=ROUNDS_MAX {
            let known = self.tasks.len();
            let mut has_gone_back = false;
            for (at, entry) in tasks.iter().enumerate() {
                let given = arriving[at].clone();
                let output = self.task(entry, &given, left, depth);
                for way in ways(entry.1) {
                    let next = match way {
                        Some("end") => {
                            left.all.merge(output.clone());
                            continue;
                        }
                        Some("exit") => None,
                        None | Some("continue") => Some(at + 1),
                        Some(name) => place_of(name),
                    };
                    let Some((next, data)) =
                        next.and_then(|next| Some((next, arriving.get_mut(next)?)))
                    else {
                        left.list.merge(output.clone());
                        continue;
                    };
                    let before = (next <= at).then(|| data.clone());
                    data.merge(output.clone());
                    has_gone_back |= before.is_some_and(|before| before != *data);
                }
            }
            if !has_gone_back || round == ROUNDS_MAX {
                return;
            }
            // The next round knows more.
            self.tasks.truncate(known);
        }
    }

    /// Follows a task, and returns its output.
    fn task(
        &mut self,
        entry: &ObjectMember<'_>,
        given: &Shape,
        left: &mut Left,
        depth: usize,
    ) -> Shape {
        let (key, task, last_line) = entry;
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Shape::default();
        }
        let input = transformed(task.get("input"), "from", given);
        let variables = variables(task, &input);
        let result = self.result(task, *last_line, &input, left, depth + 1);
        let mut output = transformed(task.get("output"), "as", &result);
        if task
            .get("export")
            .is_some_and(|export| export.get("as").is_some())
        {
            self.context
                .merge(transformed(task.get("export"), "as", &output));
        }
        self.tasks.push(AtTask {
            name: key.key.to_owned(),
            begin: (key.line, key.column),
            last_line: *last_line,
            given: given.clone(),
            input,
            result,
            output: output.clone(),
            variables,
        });
        if task.get("if").is_some() {
            output.merge(given.clone());
        }
        output
    }

    /// What a task gives before its `output.as`. Only services know their answers.
    fn result(
        &mut self,
        task: &Node,
        last_line: usize,
        input: &Shape,
        left: &mut Left,
        depth: usize,
    ) -> Shape {
        let mut shape = Shape::default();
        let is_loop = task.get("for").is_some();
        for (key, value, last_line) in entries(task, last_line) {
            match key.key {
                "set" => shape = transformed(Some(task), "set", input),
                "switch" | "wait" => shape = input.clone(),
                "do" | "try" => {
                    let mut own = Left::default();
                    self.list(value, last_line, input, &mut own, depth);
                    left.all.merge(own.all);
                    shape.merge(own.list);
                    if is_loop {
                        // There may be no iteration.
                        shape.merge(input.clone());
                    }
                }
                "catch" => {
                    let lists = entries(value, last_line).filter(|(key, ..)| key.key == "do");
                    for (_, list, last_line) in lists {
                        let mut own = Left::default();
                        self.list(list, last_line, input, &mut own, depth);
                        left.all.merge(own.all);
                        shape.merge(own.list);
                    }
                }
                "fork" => {
                    let is_race = value.get("compete").and_then(Node::as_bool) == Some(true);
                    let branches = entries(value, last_line);
                    for (_, list, last_line) in branches.filter(|(key, ..)| key.key == "branches") {
                        let output = self.branches(list, last_line, input, left, depth);
                        shape.merge(if is_race { output } else { output.list() });
                    }
                }
                "listen" | "with" => {
                    let each = match key.key {
                        "listen" => task.get("foreach"),
                        _ => value.get("subscription").and_then(|it| it.get("foreach")),
                    };
                    if let Some(each) = each {
                        // Nothing is known about an event.
                        for (_, list, last_line) in
                            entries(each, last_line).filter(|(key, ..)| key.key == "do")
                        {
                            self.list(list, last_line, &Shape::default(), left, depth);
                        }
                    }
                }
                _ => {}
            }
        }
        shape
    }

    /// Follows tasks that begin together, and returns what any of them gives.
    fn branches(
        &mut self,
        list: &Node,
        last_line: usize,
        input: &Shape,
        left: &mut Left,
        depth: usize,
    ) -> Shape {
        let mut shape = Shape::default();
        let tasks = items(list, last_line).flat_map(|(item, last_line)| entries(item, last_line));
        for entry in tasks {
            shape.merge(self.task(&entry, input, left, depth));
        }
        shape
    }

    /// The tasks around a location, innermost first.
    fn around(&self, at: Spot) -> Vec<&AtTask> {
        let holds = |task: &&AtTask| task.begin <= at && at.0 <= task.last_line;
        let mut around: Vec<&AtTask> = self.tasks.iter().filter(holds).collect();
        around.sort_by_key(|task| std::cmp::Reverse(task.begin));
        around
    }

    fn seen(&self, at: Spot, keys: &[String]) -> Option<Shape> {
        let task = self.around(at).into_iter().next();
        let own = |key: &&String| task.is_none_or(|task| **key != task.name);
        let own: Vec<&str> = keys.iter().take_while(own).map(String::as_str).collect();
        let has = |name: &str| own.contains(&name);
        // Events, errors and messages.
        let is_other = [
            "to",
            "correlate",
            "errors",
            "subscription",
            "foreach",
            "schedule",
        ];
        if is_other.into_iter().any(has) {
            return None;
        }
        let part = |outer: &str, inner: &str| own.windows(2).any(|two| two == [inner, outer]);
        let (from, output, export) = (
            part("input", "from"),
            part("output", "as"),
            part("export", "as"),
        );
        Some(match task {
            None if from => self.given.clone(),
            None if output => self.output.clone(),
            None => return None,
            Some(task) if from || has("if") => task.given.clone(),
            Some(task) if output => task.result.clone(),
            Some(task) if export => task.output.clone(),
            Some(task) => task.input.clone(),
        })
    }

    fn variable(&self, name: &str, at: Spot) -> Option<Shape> {
        let around = self.around(at);
        let task = around.first();
        Some(match name {
            "context" => self.context.clone(),
            "input" => task.map_or(&self.input, |task| &task.input).clone(),
            "output" => task.map_or(&self.output, |task| &task.output).clone(),
            "task" => {
                let mut shape = Shape::with("input", task?.given.clone());
                shape.merge(Shape::with("output", task?.result.clone()));
                shape
            }
            "workflow" => Shape::with("input", self.given.clone()),
            name => {
                let variables = around.iter().flat_map(|task| &task.variables);
                let mut found = variables.filter(|(known, _)| known == name);
                found.next()?.1.clone()
            }
        })
    }
}

/// The data of an `input` that has a schema.
fn of_schema(input: Option<&Node>) -> Shape {
    let schema = input.and_then(|input| input.get("schema")?.get("document"));
    schema.map_or_else(Shape::default, |schema| {
        Shape::of_schema(&Value::from(&schema.to_data()))
    })
}

/// The data after a transformation, if there is one.
fn transformed(part: Option<&Node>, property: &str, over: &Shape) -> Shape {
    let shape = match part.and_then(|part| part.get(property)) {
        Some(template) => match template.as_str() {
            Some(expression) => result(expression, over),
            None => Shape::of_template(template, over),
        },
        None => return over.clone(),
    };
    shape.bounded()
}

/// The variables of a loop, and of what follows an error.
fn variables(task: &Node, input: &Shape) -> Vec<(String, Shape)> {
    let named = |node: &Node, property: &str, usual: &str| {
        let name = node.get(property).and_then(Node::as_str);
        name.unwrap_or(usual).to_owned()
    };
    let mut all = Vec::new();
    if let Some(each) = task.get("for") {
        let list = each.get("in").and_then(Node::as_str);
        let list = list.map_or_else(Shape::default, |list| result(list, input));
        let item = list.at(&[Step::Item]).cloned().unwrap_or_default();
        all.push((named(each, "each", "item"), item));
    }
    if let Some(catch) = task.get("catch") {
        let mut error = Shape::default();
        for name in ["type", "status", "instance", "title", "detail"] {
            error.merge(Shape::with(name, Shape::default()));
        }
        all.push((named(catch, "as", "error"), error));
    }
    all
}

/// The ways that a task may take, by the `then` of each; `None` is the next task.
fn ways(task: &Node) -> Vec<Option<&str>> {
    if task.get("raise").is_some() {
        return Vec::new();
    }
    let mut ways = vec![task.get("then").and_then(Node::as_str)];
    let cases = task.get("switch").and_then(Node::items).unwrap_or_default();
    for case in cases.iter().filter_map(Node::members).flatten() {
        ways.extend(case.value().get("then").and_then(Node::as_str).map(Some));
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
document: {dsl: 1.0.3, namespace: a, name: w, version: 1.0.0}
input:
  schema: {document: {properties: {order: {properties: {lines: {items: {properties: {price: {}}}}}}}}}
  from: '${ {order: .order, vip: .vip} }'
use:
  functions:
    pay: {input: {schema: {document: {properties: {sum: {}}}}}, set: {paid: '${ .sum }'}}
do:
  - first:
      if: .order
      set: {rate: {vat: 19}, all: '${ .order }'}
      export: {as: '${ {kept: .rate} }'}
  - each:
      for: {each: line, in: .all.lines}
      do:
        - sum: {set: {sum: '${ $line.price }'}}
  - choose:
      switch:
        - back: {when: .sum, then: first}
        - on: {then: last}
  - both:
      fork:
        branches:
          - one: {set: {a: 1}}
          - two: {set: {b: 1}, output: {as: '${ {c: .b} }'}}
      output: {as: '${ .[0] }'}
      then: end
  - last:
      try:
        - call: {call: pay, with: {sum: '${ .sum }'}, output: {as: {answer: '${ .x }'}}}
      catch: {as: wrong, do: [{say: {set: {what: 1}}}]}
";

    fn flow() -> TaskFlow {
        let root = swirl_documents::source::read(TEXT.as_bytes(), &Default::default()).root;
        TaskFlow::of(root.unwrap())
    }

    fn shown(shape: Option<Shape>) -> String {
        shape.map_or_else(
            || "-".to_owned(),
            |data| data.keys().collect::<Vec<_>>().join(" "),
        )
    }

    fn place(line: &str) -> Spot {
        let at = TEXT.lines().position(|one| one.contains(line)).unwrap();
        (at + 1, 40)
    }

    #[test]
    fn the_known_data_at_each_task() {
        for (line, keys, data) in [
            ("from: '${ {order", vec!["from", "input"], "order"),
            ("if: .order", vec!["if", "first"], "all order rate sum vip"),
            ("kept", vec!["as", "export", "first"], "all rate"),
            (
                "each: line",
                vec!["in", "for", "each"],
                "all order rate sum vip",
            ),
            (
                "when: .sum",
                vec!["when", "back", "switch"],
                "all order rate sum vip",
            ),
            ("two:", vec!["as", "output", "two"], "b"),
            (
                "- call:",
                vec!["sum", "with", "call"],
                "all order rate sum vip",
            ),
            ("- call:", vec!["answer", "as", "output", "call"], ""),
            ("pay:", vec!["paid", "set", "pay"], "sum"),
        ] {
            let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
            assert_eq!(shown(flow().seen(place(line), &keys, None)), data, "{line}");
        }
        let event = ["with", "any", "to", "listen"].map(str::to_owned);
        assert_eq!(shown(flow().seen(place("if: .order"), &event, None)), "-");
        let schema = serde_json::json!({"properties": {"more": {}}});
        let from = ["from", "input"].map(str::to_owned);
        let given = flow().seen(place("from: '${ {order"), &from, Some(&schema));
        assert_eq!(shown(given), "more order");
    }

    #[test]
    fn the_known_values_of_variables() {
        for (name, line, keys) in [
            ("context", "- sum:", "kept"),
            ("line", "- sum:", "price"),
            ("line", "each: line", "price"),
            ("line", "- call:", "-"),
            ("wrong", "- call:", "detail instance status title type"),
            ("input", "- sum:", "all order rate sum vip"),
            ("output", "- sum:", "sum"),
            ("task", "- sum:", "input output"),
            ("workflow", "- sum:", "input"),
        ] {
            let found = flow().variable(name, place(line), None);
            assert_eq!(shown(found), keys, "{name} {line}");
        }
    }

    #[test]
    fn odd_documents_are_followed_in_bounded_time() {
        let mut nested = "[{a: {set: {x: '${ . }', y: '${ . }'}, then: a}}]".to_owned();
        for _ in 0..12 {
            nested = format!("[{{a: {{do: {nested}, then: b}}}}, {{b: {{then: a, do: 7}}}}]");
        }
        for document in [
            format!("do: {nested}"),
            "do: 7\nuse: {functions: [1]}\ninput: []".to_owned(),
            "do: [7, {}, {a: 1, b: {for: 1, catch: 2, fork: 3, listen: 4, with: 5}}]".to_owned(),
        ] {
            let root = swirl_documents::source::read(document.as_bytes(), &Default::default()).root;
            let flow = TaskFlow::of(root.unwrap());
            flow.seen((1, 20), &["set".to_owned()], None);
        }
    }
}
