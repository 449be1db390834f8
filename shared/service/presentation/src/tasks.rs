//! What a task of DSL 1.0 is, in that edition's words. The model has the same kinds for all editions: a task that calls
//! something is an operation there.

use swirl_model::Data;
use swirl_model::workflow::{State, Workflow};

use super::line::{Line, Sign};

/// The keys that make a task what it is. Tasks with a list of their own have `do` too, so it comes last.
const KINDS: [&str; 12] = [
    "call", "emit", "for", "fork", "listen", "raise", "run", "set", "switch", "try", "wait", "do",
];

/// The language's word for a state or task.
pub fn word(state: &State) -> &'static str {
    let task = state.task.as_ref();
    let word = task.and_then(|task| {
        let has = |kind: &&&str| task.definition.get(kind).is_some();
        KINDS.iter().find(has)
    });
    word.copied().unwrap_or_else(|| state.kind.as_str())
}

/// What a task calls or runs, such as `GET https://example.com/orders`. `None` if its name says it all.
pub fn called(state: &State) -> Option<Line> {
    let definition = &state.task.as_ref()?.definition;
    let text = match word(state) {
        "call" => call(definition)?,
        "run" => process(&definition.get("run")?)?,
        _ => return None,
    };
    Some(Line::new(Sign::Action, text))
}

fn call(task: &Data) -> Option<String> {
    let with = task.get("with").unwrap_or_default();
    let text = |key: &str| Some(with.get(key)?.as_str()?.to_owned());
    let call = task.get("call")?;
    match call.as_str()? {
        "http" => {
            let endpoint = with.get("endpoint")?;
            let uri = endpoint.get("uri").unwrap_or(endpoint);
            let method = text("method")?.to_uppercase();
            Some(format!("{method} {}", uri.as_str()?))
        }
        "openapi" => text("operationId"),
        "grpc" => {
            let service = with.get("service")?.get("name")?;
            Some(format!("{}/{}", service.as_str()?, text("method")?))
        }
        "asyncapi" => text("operation").or_else(|| text("channel")),
        "a2a" | "mcp" => text("method"),
        function => Some(function.to_owned()),
    }
}

fn process(run: &Data) -> Option<String> {
    let part = |kind: &str, key: &str| Some(run.get(kind)?.get(key)?.as_str()?.to_owned());
    part("shell", "command")
        .or_else(|| part("container", "image"))
        .or_else(|| part("script", "language"))
}

/// The extensions that run tasks around this one.
pub fn extended(workflow: &Workflow, state: &State) -> Option<Line> {
    let all = &workflow.tasks.as_ref()?.extensions;
    let own = state.task.as_ref()?.extensions.iter();
    let names = own.filter_map(|index| Some(&*all.get(usize::from(*index))?.name));
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| Line::new(Sign::None, format!("extended by {names}")))
}

/// Whether the workflow has tasks in place of states.
pub fn are_in(workflow: &Workflow) -> bool {
    workflow
        .states
        .first()
        .is_some_and(|state| state.task.is_some())
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{Extension, StateKind, Task, TaskWorkflow};

    use super::*;

    fn state(definition: &str) -> State {
        let definition = Data::parse(definition.as_bytes()).unwrap();
        State {
            kind: StateKind::Inject(Data::NULL),
            task: Some(Box::new(Task {
                definition,
                ..Task::default()
            })),
            ..State::default()
        }
    }

    #[test]
    fn extensions_are_named() {
        let extension = |name: &str| Extension {
            name: name.into(),
            when: None,
            before: None,
            after: None,
        };
        let workflow = Workflow {
            tasks: Some(Box::new(TaskWorkflow {
                extensions: vec![extension("log"), extension("audit")],
                ..TaskWorkflow::default()
            })),
            ..Workflow::default()
        };
        let mut state = state("{}");
        assert_eq!(extended(&workflow, &state), None);
        if let Some(task) = &mut state.task {
            task.extensions = vec![0, 1];
        }
        let line = Line::new(Sign::None, "extended by log, audit");
        assert_eq!(extended(&workflow, &state), Some(line));
    }

    #[test]
    fn tasks_have_the_words_of_their_language() {
        for (definition, expected, what) in [
            (
                r#"{"call": "http", "with": {"method": "post", "endpoint": {"uri": "https://a.example/b"}}}"#,
                "call",
                Some("POST https://a.example/b"),
            ),
            (
                r#"{"call": "http", "with": {"method": "GET", "endpoint": "https://a.example/{id}"}}"#,
                "call",
                Some("GET https://a.example/{id}"),
            ),
            (
                r#"{"call": "grpc", "with": {"service": {"name": "S"}, "method": "M"}}"#,
                "call",
                Some("S/M"),
            ),
            (r#"{"call": "price"}"#, "call", Some("price")),
            (
                r#"{"run": {"shell": {"command": "ls"}}}"#,
                "run",
                Some("ls"),
            ),
            (r#"{"run": {"workflow": {"name": "w"}}}"#, "run", None),
            (r#"{"for": {"in": "."}, "do": []}"#, "for", None),
            (r#"{"do": []}"#, "do", None),
        ] {
            let state = state(definition);
            assert_eq!(word(&state), expected, "{definition}");
            let what = what.map(|text| Line::new(Sign::Action, text));
            assert_eq!(called(&state), what, "{definition}");
        }
    }
}
