//! Parallel and foreach states.

use swirl_model::Data;
use swirl_model::workflow::{Body, Branch, Count, Foreach, IterationMode, ListId, Parallel};

use super::actions::{Layout, branch, fork};
use super::jq_text::{grouped, is_single, piped};
use super::merge::with_definitions;
use super::writer::{Tasks, Writer, append, do_list, list, marked, object};

/// The names that variables of DSL 1.0 have already.
const TAKEN: [&str; 8] = swirl_model::workflow::TASK_VARIABLES;

impl Writer<'_> {
    pub fn parallel(&mut self, parallel: &Parallel) -> Data {
        self.cannot_if(
            parallel.branches.iter().any(|branch| !branch.awaited),
            "a branch isn't waited for",
        );
        let total = parallel.branches.len() as u32;
        let races = match parallel.at_least {
            None => false,
            Some(Count::Fixed(count)) if count == total => false,
            Some(Count::Fixed(1)) => true,
            Some(_) => {
                self.cannot(
                    "some of the branches are enough ('atLeast'): in DSL 1.0 one or all are",
                );
                return Data::object();
            }
        };
        let mut branches = Vec::new();
        for (place, one) in parallel.branches.iter().enumerate() {
            let mut task = self.branch(one);
            if races {
                task = raced(task, place);
            }
            branches.push((one.name.to_string(), task));
        }
        if races {
            return self.race(parallel, branches);
        }
        let merges = self.merges(parallel);
        fork(branches, merges, false)
    }

    fn branch(&mut self, one: &Branch) -> Data {
        let mut task = match one.body {
            Body::Actions(id) => {
                let tasks = self.list_tasks(id, Layout::Branch);
                branch(tasks, ".")
            }
            Body::Flow(flow) => do_list(self.flow_tasks(flow)),
        };
        self.timeout(&mut task, one.timeout, ".");
        task
    }

    /// The results of all branches in the state data, in order.
    fn merges(&mut self, parallel: &Parallel) -> String {
        if parallel.collect {
            let lists = |branch: &Branch| matches!(branch.body, Body::Actions(_));
            self.cannot_if(
                parallel.branches.iter().any(lists),
                "the results of branches of actions become a list",
            );
            return match parallel.collect_to {
                None => "$branches".to_owned(),
                Some(path) => format!("{} = $branches", grouped(&self.path(path))),
            };
        }
        let mut text = ".".to_owned();
        for (place, one) in parallel.branches.iter().enumerate() {
            let merged = match one.body {
                Body::Actions(id) => self.replayed(id, place),
                Body::Flow(_) => format!("into($branches[{place}])"),
            };
            text = piped(&text, &merged);
        }
        text
    }

    /// The first branch that is done is enough. An error of a branch is that of the state, so it wins too.
    fn race(&mut self, parallel: &Parallel, branches: Tasks) -> Data {
        let mut text = String::new();
        for (place, one) in parallel.branches.iter().enumerate() {
            let merged = match one.body {
                Body::Actions(id) => {
                    let replayed = self.replayed(id, 0);
                    format!(".won.given as $given | [$given] as $branches | .data | {replayed}")
                }
                Body::Flow(_) => ".won.given as $given | .data | into($given)".to_owned(),
            };
            let word = if place == 0 { "if" } else { " elif" };
            text.push_str(&format!("{word} .won.branch == {place} then {merged}"));
        }
        text.push_str(" else .data end");
        let mut first = object([(
            "fork",
            object([("branches", list(branches)), ("compete", Data::bool(true))]),
        )]);
        first.set("output", object([("as", marked("{won: ., data: $input}"))]));
        let error = object([
            ("type", marked(".won.error.type")),
            ("status", marked(".won.error.status")),
            ("title", marked(".won.error.title // \"\"")),
            ("detail", marked(".won.error.detail // \"\"")),
        ]);
        let failed = object([
            ("if", marked(".won.error != null")),
            ("raise", object([("error", error)])),
        ]);
        let merged = object([("set", marked(&with_definitions(text)))]);
        do_list(vec![
            ("race".to_owned(), first),
            ("failed".to_owned(), failed),
            ("merge".to_owned(), merged),
        ])
    }

    pub fn foreach(&mut self, foreach: &Foreach, name: &str) -> Data {
        if foreach.mode != IterationMode::Sequential {
            match self.assume.sequential {
                true => self.note(format!(
                    "the iterations of '{name}' run one after another; before, they ran at once"
                )),
                false => self.cannot(
                    "iterations run at once; in DSL 1.0 they run one after another ('--assume sequential' allows that)",
                ),
            }
        }
        let computed = matches!(
            foreach.mode,
            IterationMode::Batches(Count::Expression(_))
                | IterationMode::Window(Count::Expression(_))
        );
        self.cannot_if(computed, "how many iterations run at once is an expression");
        let param = &*foreach.param;
        self.cannot_if(
            TAKEN.contains(&param) || param == "index",
            "the iteration parameter has the name of a variable of DSL 1.0",
        );
        let items = self.expr(foreach.input, ".data");
        let items = match is_single(&items) {
            true => items,
            // Several outputs are the elements.
            false => format!("[{items}] | if length == 1 then .[0] else . end"),
        };
        let iteration = format!(".data + {{{}: ${param}}}", Data::string(param));
        let mut tasks = Vec::new();
        if let Some(pause) = foreach.pause {
            let mut task = object([("if", marked("$index > 0"))]);
            task.set("wait", self.period(pause, ".data"));
            tasks.push(("pause".to_owned(), task));
        }
        match foreach.body {
            Body::Actions(id) => tasks.append(&mut self.iteration(id, &iteration)),
            Body::Flow(flow) => {
                let mut states = object([("input", object([("from", marked(&iteration))]))]);
                append(&mut states, &do_list(self.flow_tasks(flow)));
                let mut task = do_list(vec![("states".to_owned(), states)]);
                let kept = marked(". as $result | $input | .results += [$result]");
                task.set("output", object([("as", kept)]));
                tasks.push(("iteration".to_owned(), task));
            }
        }
        let begin = marked("{data: ., results: []}");
        let each = object([("each", Data::string(param)), ("in", marked(&items))]);
        let end = match foreach.output {
            None => ".data".to_owned(),
            Some(path) => {
                let path = grouped(&self.path(path));
                format!(
                    ".results as $results | .data | {path} |= (if . == null then $results elif type == \"array\" then . + $results else error(\"the output collection is \\(type) already\") end)"
                )
            }
        };
        object([
            ("input", object([("from", begin)])),
            ("for", each),
            ("do", list(tasks)),
            ("output", object([("as", marked(&end))])),
        ])
    }

    fn iteration(&mut self, id: ListId, iteration: &str) -> Tasks {
        let actions = &self.workflow[id].actions;
        let gives = actions.iter().any(|id| {
            let action = &self.workflow[*id];
            !action.results.ignore || action.kind.is_detached()
        });
        let tasks = self.list_tasks(id, Layout::Iteration);
        let begin = format!("{{own: ({iteration}), result: null}}");
        let mut own = object([("input", object([("from", marked(&begin))]))]);
        append(&mut own, &do_list(tasks));
        own.set("output", object([("as", marked(".result"))]));
        let kept = match gives {
            true => ". as $result | $input | .results += [$result]",
            false => "$input",
        };
        let mut task = do_list(vec![("actions".to_owned(), own)]);
        task.set("output", object([("as", marked(kept))]));
        vec![("iteration".to_owned(), task)]
    }
}

/// A branch of a race whose error wins too.
fn raced(task: Data, place: usize) -> Data {
    let lost = object([("set", object([("error", marked("$error"))]))]);
    let mut won = do_list(vec![("branch".to_owned(), task)]);
    let given = format!("{{branch: {place}, given: .}}");
    won.set("output", object([("as", marked(&given))]));
    object([
        ("try", list(vec![("branch".to_owned(), won)])),
        (
            "catch",
            object([("do", list(vec![("failed".to_owned(), lost)]))]),
        ),
    ])
}
