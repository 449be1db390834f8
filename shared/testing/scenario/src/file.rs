//! A scenario file as plain values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::time::Timestamp;

use super::answer::Answer;
use super::expect::Expect;
use super::parse;

/// The start of virtual time if `clock` is absent.
pub const CLOCK_DEFAULT: &str = "2024-01-01T00:00:00Z";

/// The end of a run if `until` is absent: an offset from the start of virtual time.
pub const UNTIL_DEFAULT: &str = "P366D";

/// A checked scenario: every value has the right type, and no key is unknown.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The scenario's file. Paths in the scenario are relative to its folder.
    pub path: PathBuf,
    /// The name that the scenario states, otherwise the file's name.
    pub name: String,
    /// Never empty. The first one is the workflow under test.
    pub workflows: Vec<WorkflowSource>,
    /// Starts an instance of the first workflow at time zero. It need not be an object: other values are refused at the
    /// start (docs/language.md#decision-59).
    pub input: Option<Data>,
    pub start: Vec<Start>,
    /// The start of virtual time.
    pub clock: Timestamp,
    /// An object.
    pub secrets: Data,
    /// By function name. Each list has at least one answer.
    pub functions: BTreeMap<String, Vec<Answer>>,
    /// CloudEvents as flat objects, in the order of the file. `id` and `time` may be missing.
    pub events: Vec<(Timestamp, Data)>,
    /// Texts of documents by URI.
    pub resources: BTreeMap<String, String>,
    pub until: Timestamp,
    pub control: Vec<Control>,
    pub expect: Expect,
}

impl Scenario {
    /// The same scenario, with all that it plans this much later.
    pub fn later(&self, ms: i64) -> Scenario {
        let mut later = self.clone();
        let starts = later.start.iter_mut().map(|start| &mut start.at);
        let events = later.events.iter_mut().map(|(at, _)| at);
        let control = later.control.iter_mut().map(|control| &mut control.at);
        let ends = [&mut later.clock, &mut later.until];
        for at in starts.chain(events).chain(control).chain(ends) {
            at.0 = at.0.saturating_add(ms);
        }
        later
    }
}

/// The source of a definition.
#[derive(Debug, Clone)]
pub enum WorkflowSource {
    /// The path, including the scenario's folder.
    Path(PathBuf),
    /// An object in the scenario file, with its positions in that file.
    Inline(Node),
}

/// An entry of `start`.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub workflow: String,
    pub version: Option<String>,
    /// `None`: an empty object (docs/language.md#decision-71).
    pub input: Option<Data>,
    pub at: Timestamp,
    /// The idempotency key.
    pub key: Option<String>,
}

/// An operator's action on an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    pub at: Timestamp,
    pub operation: Operation,
    pub target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Cancel,
    Suspend,
    Resume,
    Retry,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Cancel => "cancel",
            Operation::Suspend => "suspend",
            Operation::Resume => "resume",
            Operation::Retry => "retry",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Counted from 0 in the order of starts, without sub-workflows (docs/language.md#decision-72).
    Index(usize),
    Id(String),
}

/// An error in a scenario file, and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

/// A scenario file that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// All problems, in the order of the file; never empty.
    #[error("{}", problems.iter().map(|problem| problem.text(path)).collect::<Vec<_>>().join("\n"))]
    Invalid {
        path: PathBuf,
        problems: Vec<Problem>,
    },
}

impl Problem {
    fn text(&self, path: &Path) -> String {
        let hint = self
            .hint
            .as_ref()
            .map(|hint| format!("\n  help: {hint}"))
            .unwrap_or_default();
        format!(
            "{}:{}:{}: {}{hint}",
            path.display(),
            self.line,
            self.column,
            self.message
        )
    }
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid scenario.
    pub fn load(path: &Path) -> Result<Scenario, FileError> {
        let content = swirl_documents::files::read(path, swirl_documents::files::BYTES_MAX)
            .map_err(|source| FileError::Io {
                path: path.to_owned(),
                source,
            })?;
        Scenario::parse(&content, path)
    }

    /// Reads the content of a file, in YAML or JSON. `path` is its name, and paths in it are relative to that.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn parse(content: &[u8], path: &Path) -> Result<Scenario, FileError> {
        parse::scenario(content, path).map_err(|problems| FileError::Invalid {
            path: path.to_owned(),
            problems,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn give(text: &str) -> String {
        match Scenario::parse(text.as_bytes(), Path::new("f/x.scenario.yaml")) {
            Ok(scenario) => format!("{scenario:#?}"),
            Err(error) => error.to_string(),
        }
    }

    fn read(text: &str) -> Scenario {
        Scenario::parse(text.as_bytes(), Path::new("f/x.scenario.yaml")).unwrap()
    }

    #[test]
    fn the_least() {
        let scenario = read("workflows: [w.json]\nexpect: {instances: []}");
        assert_eq!(scenario.name, "x");
        assert!(
            matches!(&scenario.workflows[..], [WorkflowSource::Path(p)] if p == Path::new("f/w.json"))
        );
        assert_eq!(scenario.clock, Timestamp(1_704_067_200_000));
        assert_eq!(scenario.until.0 - scenario.clock.0, 366 * 86_400_000);
        assert_eq!(scenario.input, None);
        assert_eq!(scenario.expect.instances, Some(vec![]));
    }

    #[test]
    fn everything() {
        let scenario = read(
            r#"
name: All
workflows:
  - {id: w, states: []}
  - other.sw.yaml
input: {}
start:
  - {workflow: w, version: 1.0, input: {a: 1}, at: PT5S, key: k}
  - {workflow: v}
clock: 2024-02-28T23:00:00+01:00
secrets: {s: x}
functions:
  f: {return: null}
  g:
    - error: {status: 503, message: down}
      after: PT1S
    - {return: 1, after: PT2S}
    - never: true
events:
  - {at: P1M, event: {type: t, source: /s, data: {a: 1}}}
  - {at: 2024-02-29T00:00:00Z, event: {type: t, source: /s, id: 7}}
resources:
  a.json: {x: [1]}
  b.txt: hello
until: P2D
control:
  - {at: PT1S, suspend: 0}
  - {at: PT2S, retry: some-id}
expect:
  status: completed
  output: [1]
  outputContains: {a: 1}
  error: {name: N, code: 5, status: 503, message: part}
  states: [A, B]
  calls: [f, {function: f, arguments: {}, at: PT1S}, {function: f, at: PT2S}]
  callsUnordered: []
  produced: [{type: t, data: 1}]
  producedUnordered: []
  elapsed: P1M
  subflows: true
  instances:
    - {workflow: w, status: waiting}
"#,
        );
        assert_eq!(scenario.start[0].version.as_deref(), Some("1.0"));
        assert_eq!(scenario.start[0].at.0 - scenario.clock.0, 5000);
        assert_eq!(scenario.start[1].at, scenario.clock);
        assert_eq!(scenario.functions["g"].len(), 3);
        // A calendar month from the 28th of February, in UTC.
        assert_eq!(scenario.events[0].0.0 - scenario.clock.0, 29 * 86_400_000);
        assert_eq!(scenario.events[1].0.0 - scenario.clock.0, 2 * 3_600_000);
        assert_eq!(scenario.events[1].1.get("id"), Some(Data::string("7")));
        assert_eq!(scenario.resources["a.json"], r#"{"x":[1]}"#);
        assert_eq!(scenario.resources["b.txt"], "hello");
        assert_eq!(scenario.control[0].target, Target::Index(0));
        assert_eq!(scenario.control[1].operation, Operation::Retry);
        assert_eq!(
            scenario.expect.single.calls.as_ref().unwrap()[1].at_ms,
            Some(1000)
        );
        assert_eq!(
            scenario
                .expect
                .single
                .error
                .as_ref()
                .unwrap()
                .code
                .as_deref(),
            Some("5")
        );
    }

    #[test]
    fn nothing() {
        for text in ["", " \n", "# only a comment\n", "---\n"] {
            let expected = "f/x.scenario.yaml:1:1: the scenario is empty\n  \
                 help: a scenario is an object with at least 'workflows' and 'expect'";
            assert_eq!(give(text), expected, "{text:?}");
        }
    }

    #[test]
    fn unknown_keys_at_every_level() {
        insta::assert_snapshot!(give(r#"
workflow: [w.json]
workflows: [w.json]
start: [{workflow: w, inputs: {}}]
functions:
  f: {returns: 1}
  g: [{error: {state: 1}}]
events: [{at: PT1S, when: PT2S, event: {type: t, source: s}}]
control: [{at: PT1S, kill: 0}]
expect:
  stauts: completed
  error: {mesage: a}
  calls: [{function: f, args: {}}]
  instances: [{workflow: w, elapse: PT1S}]
  rejected: [{pointer: /a}]
"#), @r#"
        f/x.scenario.yaml:2:1: a scenario has no key 'workflow'
          help: did you mean 'workflows'?
        f/x.scenario.yaml:4:23: an entry of 'start' has no key 'inputs'
          help: did you mean 'input'?
        f/x.scenario.yaml:6:6: an answer of 'f' needs one of 'return', 'respond', 'exit', 'error' and 'never'
        f/x.scenario.yaml:6:7: an answer of 'f' has no key 'returns'
          help: did you mean 'return'?
        f/x.scenario.yaml:7:16: 'error' has no key 'state'
          help: did you mean 'status'?
        f/x.scenario.yaml:8:21: an entry of 'events' has no key 'when'
          help: the keys here are 'at', 'event'
        f/x.scenario.yaml:9:11: an entry of 'control' needs exactly one of 'cancel', 'suspend', 'resume' and 'retry'
        f/x.scenario.yaml:9:22: an entry of 'control' has no key 'kill'
          help: the keys here are 'at', 'cancel', 'suspend', 'resume', 'retry'
        f/x.scenario.yaml:11:3: 'expect' has no key 'stauts'
          help: did you mean 'status'?
        f/x.scenario.yaml:11:3: 'expect' has 'rejected' and other keys: nothing runs where a definition is refused
        f/x.scenario.yaml:12:11: 'error' has no key 'mesage'
          help: did you mean 'message'?
        f/x.scenario.yaml:13:25: a call has no key 'args'
          help: the keys here are 'function', 'task', 'arguments', 'at', 'method', 'uri', 'query', 'headers', 'body'
        f/x.scenario.yaml:14:29: an entry of 'instances' has no key 'elapse'
          help: did you mean 'elapsed'?
        f/x.scenario.yaml:15:15: an entry of 'rejected' has no key 'pointer'
          help: the keys here are 'code', 'path', 'message'
        "#);
    }

    #[test]
    fn wrong_values() {
        insta::assert_snapshot!(give(r#"
name: 5
workflows: []
start: [{}, {workflow: w, at: soon}]
clock: yesterday
secrets: [a]
functions:
  f: []
  g: {return: 1, error: {}}
  h: {never: true, after: PT1S}
  i: {never: false}
  j: {after: PT1S}
  k: {error: {status: 99}}
  l: 5
events: [{event: {type: t, source: s}}, {at: PT1S, event: {type: 5}}, {at: 2023-12-31T00:00:00Z, event: {source: s, type: t, Data: 1}}]
resources: 5
until: -PT1S
control: [{at: PT1S, cancel: 0, retry: 0}, {at: PT1S}, {cancel: -1}]
expect:
  status: complete
  states: A
  calls: [5, {}]
  produced: [x]
  elapsed: 5
  subflows: true
"#), @r#"
        f/x.scenario.yaml:2:7: 'name' must be a string, but is a number
        f/x.scenario.yaml:3:12: 'workflows' is empty
          help: list at least the workflow under test
        f/x.scenario.yaml:4:9: an entry of 'start' needs 'workflow'
        f/x.scenario.yaml:4:31: 'at' is not an ISO 8601 duration: a duration begins with P, as in PT15M or P1D
          help: write for example 'PT5S' (5 seconds) or 'P1DT12H' (a day and a half)
        f/x.scenario.yaml:5:8: 'clock' is not a valid instant: 'yesterday' is not an RFC 3339 instant such as 2024-01-31T09:00:00Z
          help: write for example '2024-01-01T00:00:00Z'
        f/x.scenario.yaml:6:10: 'secrets' must be an object, but is a list
        f/x.scenario.yaml:8:6: the function 'f' has no answer
        f/x.scenario.yaml:9:6: an answer of 'g' has 'return' and 'error': only one may be given
        f/x.scenario.yaml:10:6: an answer of 'h' has 'never' and 'after': an answer that never comes has no time
        f/x.scenario.yaml:11:14: 'never' must be true or left out
          help: say what it answers with 'return' or 'error'
        f/x.scenario.yaml:12:6: an answer of 'j' needs one of 'return', 'respond', 'exit', 'error' and 'never'
        f/x.scenario.yaml:13:23: 'status' must be an HTTP status: a number from 100 to 599
        f/x.scenario.yaml:14:6: an answer of 'l' must be an object, but is a number
        f/x.scenario.yaml:15:59: an event needs 'source'
        f/x.scenario.yaml:15:66: 'type' must be a string, but is a number
        f/x.scenario.yaml:15:76: 'at' lies before virtual time zero
        f/x.scenario.yaml:15:132: an event has no attribute 'Data'
          help: did you mean 'data'?
        f/x.scenario.yaml:16:12: 'resources' must be an object, but is a number
        f/x.scenario.yaml:17:8: 'until' is not an ISO 8601 duration: a duration cannot be negative
          help: write for example 'PT5S' (5 seconds) or 'P1DT12H' (a day and a half)
        f/x.scenario.yaml:18:11: an entry of 'control' needs exactly one of 'cancel', 'suspend', 'resume' and 'retry'
        f/x.scenario.yaml:18:44: an entry of 'control' needs exactly one of 'cancel', 'suspend', 'resume' and 'retry'
        f/x.scenario.yaml:18:56: an entry of 'control' needs 'at'
        f/x.scenario.yaml:18:65: 'cancel' must be an instance's index, counted from 0, or its id
        f/x.scenario.yaml:20:3: 'subflows' has no effect without 'instances'
          help: list the instances, sub-workflows among them, under 'instances'
        f/x.scenario.yaml:20:11: 'status' cannot be 'complete'
          help: did you mean 'completed'?
        f/x.scenario.yaml:21:11: 'states' must be a list, but is a string
        f/x.scenario.yaml:22:11: a call must be a function's name or an object, but is a number
        f/x.scenario.yaml:22:14: a call without any key matches every call
          help: add 'task' or 'function'
        f/x.scenario.yaml:23:14: a produced event must be an object, but is a string
        f/x.scenario.yaml:24:12: 'elapsed' must be an ISO 8601 duration, but is a number
          help: write for example 'PT5S' (5 seconds) or 'P1DT12H' (a day and a half)
        "#);
    }

    #[test]
    fn contradictions_are_rejected() {
        insta::assert_snapshot!(give("workflows: [a]\nexpect: {rejected: [], status: completed}"), @"f/x.scenario.yaml:2:9: 'expect' has 'rejected' and other keys: nothing runs where a definition is refused");
        insta::assert_snapshot!(give("workflows: [a]\ninput: {}\nexpect:"), @"f/x.scenario.yaml:3:7: 'expect' must be an object, but is null");
        insta::assert_snapshot!(give("workflows: [a]\ninput: {}\nexpect: {}"), @r#"
        f/x.scenario.yaml:3:9: 'expect' is empty: the scenario would check nothing
          help: add 'status: completed', or what else must hold
        "#);
        insta::assert_snapshot!(give("workflows: [a]"), @"f/x.scenario.yaml:1:1: a scenario needs 'expect'");
        insta::assert_snapshot!(give("- a"), @"f/x.scenario.yaml:1:1: a scenario must be an object, but is a list");
        insta::assert_snapshot!(give("a: [1"), @"f/x.scenario.yaml:1:4: this is not valid YAML: unclosed bracket '['");
        insta::assert_snapshot!(give("workflows: [a]\nexpect: {status: completed, status: faulted}"), @r#"
        f/x.scenario.yaml:2:29: the key 'status' appears twice
          help: remove one of the two, or rename it
        "#);
    }
}
