//! Typing in a long definition: every answer arrives in time, and memory doesn't grow.
//!
//! `SWIRL_TYPING=5000,10000 cargo test --release -p swirl-authoring --test typing -- --nocapture` measures with 5,000
//! lines and 10,000 edits; docs/editors.md has the figures.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use swirl_authoring::lsp::{Source, serve};
use swirl_spec::resource::{MapResources, Resources};

const URI: &str = "file:///long.sw.yaml";
const PATIENCE: Duration = Duration::from_secs(60);

struct Nothing;

impl Source for Nothing {
    fn beside(&self, _: &str) -> Box<dyn Resources> {
        Box::new(MapResources::default())
    }
}

/// A valid definition with about this many lines.
fn definition(lines: usize) -> String {
    let mut text = "id: long\nversion: 1.0.0\nspecVersion: '0.8'\nstart: S0\nfunctions:\n  - {name: sum, type: expression, operation: '.total + .fee'}\n".to_owned();
    text.push_str("errors:\n  - {name: Late, code: late}\nstates:\n");
    let count = lines.saturating_sub(10) / 20;
    for index in 0..count {
        let next = index + 1;
        text.push_str(&format!(
            "  - name: S{index}
    type: operation
    actionMode: sequential
    stateDataFilter:
      output: '${{ . + {{step: {index}}} }}'
    actions:
      - name: first {index}
        functionRef:
          refName: sum
          arguments:
            order: '${{ .orders[{index}] | select(.open) }}'
            limit: 100
        actionDataFilter:
          results: '${{ .total }}'
          toStateData: .totals.t{index}
    onErrors:
      - errorRef: Late
        transition: Last
    transition: {}
",
            if next == count {
                "Last".to_owned()
            } else {
                format!("S{next}")
            }
        ));
    }
    text.push_str("  - {name: Last, type: inject, data: {done: true}, end: true}\n");
    text
}

/// An editor that waits for each answer.
struct Editor {
    connection: Connection,
    server: JoinHandle<()>,
    requests: i32,
    version: i64,
    /// The last findings that arrived before an answer.
    heard: Option<Value>,
}

impl Editor {
    fn open(text: &str) -> Editor {
        let (ours, theirs) = Connection::memory();
        let server = std::thread::spawn(move || serve(&theirs, Arc::new(Nothing)).unwrap());
        let editor = Editor {
            connection: ours,
            server,
            requests: 0,
            version: 1,
            heard: None,
        };
        let document = json!({"uri": URI, "languageId": "yaml", "version": 1, "text": text});
        editor.notify("textDocument/didOpen", json!({"textDocument": document}));
        editor
    }

    fn notify(&self, method: &str, params: Value) {
        let method = method.to_owned();
        let message = Notification { method, params };
        self.connection.sender.send(message.into()).unwrap();
    }

    /// Replaces the text between two characters of a line.
    fn change(&mut self, line: usize, from: usize, to: usize, text: &str) {
        self.version += 1;
        let range = json!({
            "start": {"line": line, "character": from},
            "end": {"line": line, "character": to},
        });
        self.notify(
            "textDocument/didChange",
            json!({
                "textDocument": {"uri": URI, "version": self.version},
                "contentChanges": [{"range": range, "text": text}],
            }),
        );
    }

    fn ask(&mut self, method: &str, line: usize, character: usize) -> Value {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        let params = json!({
            "textDocument": {"uri": URI},
            "position": {"line": line, "character": character},
        });
        let method = method.to_owned();
        let request = Request { id, method, params };
        self.connection.sender.send(request.into()).unwrap();
        loop {
            match self.next() {
                Message::Response(Response {
                    id,
                    response_result,
                }) if id == RequestId::from(self.requests) => {
                    return response_result.unwrap_or_else(|error| panic!("{error:?}"));
                }
                Message::Notification(Notification { params, .. }) => self.heard = Some(params),
                _ => {}
            }
        }
    }

    /// The findings of the current text.
    fn findings(&mut self) -> Value {
        loop {
            let heard = self.heard.take();
            let params = heard.or_else(|| match self.next() {
                Message::Notification(Notification { params, .. }) => Some(params),
                _ => None,
            });
            if let Some(params) = params
                && params["version"] == self.version
            {
                return params["diagnostics"].clone();
            }
        }
    }

    fn next(&self) -> Message {
        self.connection.receiver.recv_timeout(PATIENCE).unwrap()
    }

    fn close(self) {
        drop(self.connection);
        self.server.join().unwrap();
    }
}

/// The durations of operations.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn take<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = f();
        self.0.push(begun.elapsed());
        result
    }

    fn say(&mut self, what: &str) {
        self.0.sort();
        let at = |share: usize| self.0[(self.0.len() - 1) * share / 100].as_secs_f64() * 1000.0;
        println!(
            "{what}: {} times, p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
            self.0.len(),
            at(50),
            at(95),
            at(99),
            at(100),
        );
    }
}

/// The memory of this process in MiB, if the system reports it.
fn memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4 / 1024)
}

/// Lines that are typed letter by letter, each with the word that must be offered.
const TYPED: [(&str, &str); 3] = [
    ("    usedForComp", "usedForCompensation"),
    ("    transition: La", "Last"),
    ("    compensatedBy: S", "S0"),
];

fn type_along(lines: usize, edits: usize) {
    let text = definition(lines);
    let starts: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start() == "actionMode: sequential")
        .map(|(index, _)| index)
        .collect();
    let mut editor = Editor::open(&text);
    assert_eq!(editor.findings(), json!([]));
    let (mut answers, mut findings) = (Times::default(), Times::default());
    let (mut made, mut round) = (0, 0);
    let mut early = None;
    while made < edits {
        let line = starts[round * 7919 % starts.len()];
        let (typed, wanted) = TYPED[round % TYPED.len()];
        // Adds a new line and types into it letter by letter.
        editor.change(line, 0, 0, "\n");
        for (at, letter) in typed.char_indices() {
            editor.change(line, at, at, &letter.to_string());
            let items = answers.take(|| editor.ask("textDocument/completion", line, at + 1));
            if at + 1 == typed.len() {
                let mut labels = items.as_array().unwrap().iter().map(|item| &item["label"]);
                assert!(labels.any(|label| label == wanted), "{typed}: {items}");
            }
        }
        answers.take(|| editor.ask("textDocument/hover", line + 2, 6));
        answers.take(|| editor.ask("textDocument/documentSymbol", 0, 0));
        let found = findings.take(|| editor.findings());
        assert_ne!(found, json!([]), "{typed}");
        editor.change(line, 0, typed.len(), "");
        editor.notify(
            "textDocument/didChange",
            json!({
                "textDocument": {"uri": URI, "version": editor.version + 1},
                "contentChanges": [{
                    "range": {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}},
                    "text": "",
                }],
            }),
        );
        editor.version += 1;
        made += typed.len() + 3;
        round += 1;
        if made > edits / 10 {
            early = early.or_else(memory);
        }
    }
    assert_eq!(editor.findings(), json!([]), "the text is as it was");
    answers.say("answers");
    findings.say("findings, after the last letter");
    if let (Some(early), Some(late)) = (early, memory()) {
        println!("memory: {early} MiB after a tenth of the edits, {late} MiB after {made}");
        assert!(late <= early + early / 4 + 32, "{early} to {late} MiB");
    }
    editor.close();
}

/// The number of lines and edits: few, unless `SWIRL_TYPING` sets others, such as `5000,10000`.
#[test]
fn answers_arrive_during_typing() {
    let asked = std::env::var("SWIRL_TYPING").ok();
    let asked = asked.as_deref().and_then(|text| text.split_once(','));
    let (lines, edits) = asked.map_or((200, 60), |(lines, edits)| {
        (lines.parse().unwrap(), edits.parse().unwrap())
    });
    let text = definition(lines);
    println!("{} lines, {} bytes", text.lines().count(), text.len());
    type_along(lines, edits);
}
