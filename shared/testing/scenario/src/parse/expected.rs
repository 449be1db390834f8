//! The key `expect`.

use swirl_documents::source::Node;
use swirl_model::Data;

use super::parts::any_status;
use super::reader::Reader;
use crate::expect::{Expect, Finding, STATUSES, Wanted, WantedCall, WantedError, since};

/// The keys for one instance.
const INSTANCE_KEYS: [&str; 12] = [
    "status",
    "output",
    "outputContains",
    "error",
    "states",
    "tasks",
    "calls",
    "callsUnordered",
    "produced",
    "producedUnordered",
    "elapsed",
    "scheduledAt",
];

pub(super) fn expect(r: &mut Reader, node: &Node) -> Expect {
    let keys: Vec<&str> = INSTANCE_KEYS
        .into_iter()
        .chain(["instances", "subflows", "rejected"])
        .collect();
    if !r.object(node, "'expect'", &keys) {
        return Expect::default();
    }
    let members = node.members().map_or(0, |members| members.len());
    if members == 0 {
        let message = "'expect' is empty: the scenario would check nothing";
        r.wrong(
            node,
            message,
            Some("add 'status: completed', or what else must hold"),
        );
    }
    if node.get("rejected").is_some() && members > 1 {
        let message =
            "'expect' has 'rejected' and other keys: nothing runs where a definition is refused";
        r.wrong(node, message, None);
    }
    let subflows = node
        .get("subflows")
        .and_then(|n| r.boolean(n, "'subflows'"))
        .unwrap_or(false);
    if subflows && node.get("instances").is_none() {
        let message = "'subflows' has no effect without 'instances'";
        r.wrong(
            node,
            message,
            Some("list the instances, sub-workflows among them, under 'instances'"),
        );
    }
    Expect {
        rejected: node.get("rejected").map(|n| rejected(r, n)),
        instances: node.get("instances").map(|n| instances(r, n)),
        subflows,
        single: wanted(r, node),
    }
}

fn rejected(r: &mut Reader, node: &Node) -> Vec<Finding> {
    let mut rows = Vec::new();
    for item in r.list(node, "'rejected'") {
        if r.object(item, "an entry of 'rejected'", &["code", "path", "message"]) {
            rows.push(Finding {
                code: item.get("code").and_then(|n| r.text(n, "'code'")),
                path: item.get("path").and_then(|n| pointer(r, n)),
                message: item.get("message").and_then(|n| r.string(n, "'message'")),
            });
        }
    }
    rows
}

/// A JSON pointer: empty for the whole document, otherwise it begins with a slash.
fn pointer(r: &mut Reader, node: &Node) -> Option<String> {
    match node.as_str() {
        Some(text) if text.is_empty() || text.starts_with('/') => Some(text.to_owned()),
        _ => {
            r.wrong(
                node,
                "'path' must be a JSON pointer",
                Some("write for example '/states/0/transition'"),
            );
            None
        }
    }
}

fn instances(r: &mut Reader, node: &Node) -> Vec<Wanted> {
    let keys: Vec<&str> = INSTANCE_KEYS.into_iter().chain(["workflow"]).collect();
    let mut rows = Vec::new();
    for item in r.list(node, "'instances'") {
        if r.object(item, "an entry of 'instances'", &keys) {
            let workflow = item.get("workflow").and_then(|n| r.string(n, "'workflow'"));
            rows.push(Wanted {
                workflow,
                ..wanted(r, item)
            });
        }
    }
    rows
}

fn wanted(r: &mut Reader, node: &Node) -> Wanted {
    Wanted {
        workflow: None,
        status: node
            .get("status")
            .and_then(|n| r.word(n, "'status'", &STATUSES)),
        output: node.get("output").map(Node::to_data),
        output_contains: node.get("outputContains").map(Node::to_data),
        error: node.get("error").and_then(|n| error(r, n)),
        states: node.get("states").map(|n| {
            let items = r.list(n, "'states'");
            items
                .iter()
                .filter_map(|item| r.string(item, "a state's name"))
                .collect()
        }),
        tasks: node.get("tasks").map(|n| {
            let items = r.list(n, "'tasks'");
            items
                .iter()
                .filter_map(|item| r.string(item, "a task's name"))
                .collect()
        }),
        calls: node.get("calls").map(|n| calls(r, n, "'calls'")),
        calls_unordered: node
            .get("callsUnordered")
            .map(|n| calls(r, n, "'callsUnordered'")),
        produced: node.get("produced").map(|n| produced(r, n, "'produced'")),
        produced_unordered: node
            .get("producedUnordered")
            .map(|n| produced(r, n, "'producedUnordered'")),
        elapsed: node.get("elapsed").and_then(|n| r.duration(n, "'elapsed'")),
        scheduled_at: node
            .get("scheduledAt")
            .and_then(|n| r.moment(n, "'scheduledAt'")),
    }
}

fn error(r: &mut Reader, node: &Node) -> Option<WantedError> {
    let known = &[
        "name", "code", "status", "message", "type", "title", "detail", "instance",
    ];
    r.object(node, "'error'", known).then(|| WantedError {
        kind: node.get("type").and_then(|n| r.string(n, "'type'")),
        title: node.get("title").and_then(|n| r.string(n, "'title'")),
        detail: node.get("detail").and_then(|n| r.string(n, "'detail'")),
        instance: node.get("instance").and_then(|n| r.string(n, "'instance'")),
        name: node.get("name").and_then(|n| r.string(n, "'name'")),
        code: node.get("code").and_then(|n| r.text(n, "'code'")),
        status: node.get("status").and_then(|n| any_status(r, n)),
        message: node.get("message").and_then(|n| r.string(n, "'message'")),
    })
}

fn calls(r: &mut Reader, node: &Node, what: &str) -> Vec<WantedCall> {
    let mut rows = Vec::new();
    for item in r.list(node, what) {
        if item.members().is_none() {
            if let Some(name) = item.as_str().filter(|name| !name.is_empty()) {
                rows.push(WantedCall {
                    function: Some(name.to_owned()),
                    ..WantedCall::default()
                });
            } else {
                r.wrong_kind(item, "a call", "a function's name or an object");
            }
            continue;
        }
        let known = &[
            "function",
            "task",
            "arguments",
            "at",
            "method",
            "uri",
            "query",
            "headers",
            "body",
        ];
        r.object(item, "a call", known);
        let of_task = ["task", "method", "uri", "query", "headers", "body"];
        let is_task = of_task.iter().any(|key| item.get(key).is_some());
        if let (Some(_), Some(node)) = (item.get("task"), item.get("function")) {
            r.wrong(node, "a call is of a 'task' or of a 'function'", None);
        }
        let name = item.get("task").map(|node| (node, "'task'"));
        let name = name.or_else(|| item.get("function").map(|node| (node, "'function'")));
        if item.members().is_some_and(<[_]>::is_empty) {
            let message = "a call without any key matches every call";
            r.wrong(item, message, Some("add 'task' or 'function'"));
        }
        let named = name.and_then(|(node, what)| r.string(node, what));
        rows.push(WantedCall {
            function: named,
            is_task,
            method: item.get("method").and_then(|n| r.string(n, "'method'")),
            uri: item.get("uri").and_then(|n| r.string(n, "'uri'")),
            query: item.get("query").map(Node::to_data),
            headers: item.get("headers").map(Node::to_data),
            body: item.get("body").map(Node::to_data),
            arguments: item.get("arguments").map(Node::to_data),
            at_ms: item
                .get("at")
                .and_then(|n| r.moment(n, "'at'"))
                .map(|at| since(r.clock, at)),
        });
    }
    rows
}

fn produced(r: &mut Reader, node: &Node, what: &str) -> Vec<Data> {
    let items = r.list(node, what);
    items
        .iter()
        .filter_map(|item| r.map(item, "a produced event"))
        .collect()
}
