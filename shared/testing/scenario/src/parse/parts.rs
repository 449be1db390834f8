//! `start`, `functions`, `events` and `control`.

use std::collections::BTreeMap;

use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::time::Timestamp;

use super::reader::Reader;
use crate::answer::{Answer, Exit, Failure, Reply, Respond, Return};
use crate::file::{Control, Operation, Start, Target};

pub(super) fn starts(r: &mut Reader, node: &Node) -> Vec<Start> {
    let what = "an entry of 'start'";
    let mut starts = Vec::new();
    for item in r.list(node, "'start'") {
        if !r.object(item, what, &["workflow", "version", "input", "at", "key"]) {
            continue;
        }
        let workflow = r
            .need(item, what, "workflow")
            .and_then(|n| r.string(n, "'workflow'"));
        starts.push(Start {
            workflow: workflow.unwrap_or_default(),
            version: item.get("version").and_then(|n| r.text(n, "'version'")),
            input: item.get("input").map(Node::to_data),
            at: item
                .get("at")
                .and_then(|n| r.moment(n, "'at'"))
                .unwrap_or(r.clock),
            key: item.get("key").and_then(|n| r.text(n, "'key'")),
        });
    }
    starts
}

pub(super) fn functions(r: &mut Reader, node: &Node) -> BTreeMap<String, Vec<Answer>> {
    let Some(members) = node.members() else {
        r.wrong_kind(node, "'functions'", "an object");
        return BTreeMap::new();
    };
    let mut functions = BTreeMap::new();
    for member in members {
        let (name, value) = (member.key(), member.value());
        let answers: Vec<Answer> = match value.items() {
            Some([]) => {
                r.wrong(value, format!("the function '{name}' has no answer"), None);
                continue;
            }
            Some(items) => items
                .iter()
                .filter_map(|item| answer(r, item, name))
                .collect(),
            None => answer(r, value, name).into_iter().collect(),
        };
        functions.insert(name.to_owned(), answers);
    }
    functions
}

fn answer(r: &mut Reader, node: &Node, function: &str) -> Option<Answer> {
    let what = format!("an answer of '{function}'");
    if !r.object(
        node,
        &what,
        &["return", "respond", "exit", "error", "never", "after"],
    ) {
        return None;
    }
    let after = node.get("after").and_then(|n| r.duration(n, "'after'"));
    let given: Vec<&str> = ["return", "respond", "exit", "error", "never"]
        .into_iter()
        .filter(|key| node.get(key).is_some())
        .collect();
    match given[..] {
        [] => {
            r.wrong(
                node,
                format!("{what} needs one of 'return', 'respond', 'exit', 'error' and 'never'"),
                None,
            );
            return None;
        }
        [_] => {}
        _ => {
            r.wrong(
                node,
                format!(
                    "{what} has '{}': only one may be given",
                    given.join("' and '")
                ),
                None,
            );
            return None;
        }
    }
    let reply = if let Some(value) = node.get("return") {
        Reply::Return(returned(r, value)?)
    } else if let Some(value) = node.get("respond") {
        Reply::Respond(respond(r, value)?)
    } else if let Some(value) = node.get("exit") {
        Reply::Exit(exit(r, value)?)
    } else if let Some(value) = node.get("error") {
        Reply::Error(failure(r, value)?)
    } else {
        let value = node.get("never")?;
        match r.boolean(value, "'never'")? {
            true if node.get("after").is_some() => {
                r.wrong(
                    node,
                    format!(
                        "{what} has 'never' and 'after': an answer that never comes has no time"
                    ),
                    None,
                );
                return None;
            }
            true => Reply::Never,
            false => {
                r.wrong(
                    value,
                    "'never' must be true or left out",
                    Some("say what it answers with 'return' or 'error'"),
                );
                return None;
            }
        }
    };
    Some(Answer {
        reply,
        after: after.unwrap_or_default(),
    })
}

/// Compiles the expressions, so that invalid ones are found before anything runs.
fn returned(r: &mut Reader, node: &Node) -> Option<Return> {
    if let Some(items) = node.items() {
        let items: Vec<Option<Return>> = items.iter().map(|item| returned(r, item)).collect();
        return items
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .map(Return::array);
    }
    if let Some(members) = node.members() {
        let members: Vec<Option<(String, Return)>> = members
            .iter()
            .map(|member| Some((member.key().to_owned(), returned(r, member.value())?)))
            .collect();
        return members
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .map(Return::object);
    }
    let Some(text) = node.as_str() else {
        return Some(Return::Literal(node.to_data()));
    };
    match Return::text(text) {
        Ok(value) => Some(value),
        Err(error) => {
            r.wrong(node, format!("'return' cannot be evaluated: {error}"), None);
            None
        }
    }
}

fn exit(r: &mut Reader, node: &Node) -> Option<Exit> {
    if !r.object(node, "'exit'", &["code", "stdout", "stderr"]) {
        return None;
    }
    let code = match node.get("code") {
        None => 0,
        Some(node) => match node.as_i64().and_then(|code| i32::try_from(code).ok()) {
            Some(code) => code,
            None => {
                r.wrong(node, "'code' must be a number, such as 1".to_owned(), None);
                return None;
            }
        },
    };
    let mut text = |name: &str| match node.get(name) {
        Some(node) => returned(r, node),
        None => Some(Return::Literal(Data::string(""))),
    };
    Some(Exit {
        code,
        stdout: text("stdout")?,
        stderr: text("stderr")?,
    })
}

fn respond(r: &mut Reader, node: &Node) -> Option<Respond> {
    if !r.object(node, "'respond'", &["status", "headers", "body"]) {
        return None;
    }
    let mut headers = Vec::new();
    if let Some(node) = node.get("headers") {
        let Some(members) = node.members() else {
            r.wrong_kind(node, "'headers'", "an object");
            return None;
        };
        for member in members {
            let value = r.text(member.value(), "a header")?;
            headers.push((member.key().to_owned(), value));
        }
    }
    Some(Respond {
        status: match node.get("status") {
            Some(node) => status(r, node)?,
            None => 200,
        },
        headers,
        body: node.get("body").map(Node::to_data),
    })
}

fn failure(r: &mut Reader, node: &Node) -> Option<Failure> {
    let known = &[
        "name",
        "code",
        "status",
        "message",
        "retryAfter",
        "type",
        "title",
        "detail",
    ];
    if !r.object(node, "'error'", known) {
        return None;
    }
    Some(Failure {
        name: node.get("name").and_then(|n| r.string(n, "'name'")),
        code: node.get("code").and_then(|n| r.text(n, "'code'")),
        status: node
            .get("status")
            .and_then(|n| match node.get("type").is_some() {
                true => any_status(r, n),
                false => status(r, n),
            }),
        message: node.get("message").and_then(|n| r.string(n, "'message'")),
        retry_after: node
            .get("retryAfter")
            .and_then(|n| r.duration(n, "'retryAfter'")),
        kind: node.get("type").and_then(|n| r.string(n, "'type'")),
        title: node.get("title").and_then(|n| r.string(n, "'title'")),
        detail: node.get("detail").and_then(|n| r.string(n, "'detail'")),
    })
}

/// The status of an error: in DSL 1.0 it may be any number.
pub(super) fn any_status(r: &mut Reader, node: &Node) -> Option<u16> {
    let found = node.is_number().then(|| node.raw().parse().ok()).flatten();
    if found.is_none() {
        r.wrong(node, "'status' must be a number from 0 to 65535", None);
    }
    found
}

/// An HTTP status.
pub(super) fn status(r: &mut Reader, node: &Node) -> Option<u16> {
    let found = node
        .is_number()
        .then(|| node.raw().parse::<u16>().ok())
        .flatten();
    let found = found.filter(|status| (100..=599).contains(status));
    if found.is_none() {
        r.wrong(
            node,
            "'status' must be an HTTP status: a number from 100 to 599",
            None,
        );
    }
    found
}

pub(super) fn events(r: &mut Reader, node: &Node) -> Vec<(Timestamp, Data)> {
    let what = "an entry of 'events'";
    let mut events = Vec::new();
    for item in r.list(node, "'events'") {
        if !r.object(item, what, &["at", "event"]) {
            continue;
        }
        let at = match item.get("at") {
            Some(node) => r.moment(node, "'at'"),
            None => Some(r.zero()),
        };
        let event = r.need(item, what, "event").and_then(|n| event(r, n));
        if let (Some(at), Some(event)) = (at, event) {
            events.push((at, event));
        }
    }
    events
}

/// A CloudEvent in JSON format. `id` and `time` may be missing.
fn event(r: &mut Reader, node: &Node) -> Option<Data> {
    let Some(members) = node.members() else {
        r.wrong_kind(node, "'event'", "an object");
        return None;
    };
    let before = r.problems.len();
    for key in ["type", "source"] {
        if let Some(value) = r.need(node, "an event", key) {
            r.string(value, &format!("'{key}'"));
        }
    }
    let mut event = Data::object();
    for member in members {
        let (name, value) = (member.key(), member.value());
        match name {
            "data" | "type" | "source" => event.set(name, value.to_data()),
            "id" | "time" | "subject" | "specversion" | "datacontenttype" | "dataschema" => {
                if let Some(text) = r.text(value, &format!("'{name}'")) {
                    event.set(name, Data::string(text));
                }
            }
            _ => {
                // A standard attribute in another case is a mistake, not an extension.
                if let Some(meant) = ["data", "type", "source", "id", "time", "subject"]
                    .into_iter()
                    .find(|known| known.eq_ignore_ascii_case(name))
                {
                    let hint = format!("did you mean '{meant}'?");
                    r.wrong(
                        value,
                        format!("an event has no attribute '{name}'"),
                        Some(&hint),
                    );
                }
                if value.items().is_some() || value.members().is_some() {
                    let hint = "attributes are flat: put structured values under 'data'";
                    let kind = value.kind_word();
                    r.wrong(
                        value,
                        format!("the attribute '{name}' is {kind}"),
                        Some(hint),
                    );
                }
                event.set(name, value.to_data());
            }
        }
    }
    (r.problems.len() == before).then_some(event)
}

pub(super) fn controls(r: &mut Reader, node: &Node) -> Vec<Control> {
    const OPERATIONS: [(&str, Operation); 4] = [
        ("cancel", Operation::Cancel),
        ("suspend", Operation::Suspend),
        ("resume", Operation::Resume),
        ("retry", Operation::Retry),
    ];
    let what = "an entry of 'control'";
    let mut controls = Vec::new();
    for item in r.list(node, "'control'") {
        if !r.object(item, what, &["at", "cancel", "suspend", "resume", "retry"]) {
            continue;
        }
        let at = r.need(item, what, "at").and_then(|n| r.moment(n, "'at'"));
        let given: Vec<_> = OPERATIONS
            .iter()
            .filter_map(|(word, op)| Some((word, op, item.get(word)?)))
            .collect();
        match given[..] {
            [(word, operation, value)] => {
                if let (Some(at), Some(target)) = (at, target(r, value, word)) {
                    controls.push(Control {
                        at,
                        operation: *operation,
                        target,
                    });
                }
            }
            _ => r.wrong(
                item,
                format!("{what} needs exactly one of 'cancel', 'suspend', 'resume' and 'retry'"),
                None,
            ),
        }
    }
    controls
}

fn target(r: &mut Reader, node: &Node, word: &str) -> Option<Target> {
    if !node.is_number() {
        return r.string(node, &format!("'{word}'")).map(Target::Id);
    }
    let index = node.raw().parse().ok().map(Target::Index);
    if index.is_none() {
        r.wrong(
            node,
            format!("'{word}' must be an instance's index, counted from 0, or its id"),
            None,
        );
    }
    index
}
