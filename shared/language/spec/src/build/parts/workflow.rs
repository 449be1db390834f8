//! The workflow definition itself (section "Workflow Definition Structure").

use std::collections::BTreeSet;
use std::sync::Arc;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{StateId, When};

use crate::build::ctx::{Ctx, Obj, and, did_you_mean, words};
use crate::build::params::{DEFAULT_PARAM, is_variable, meant_param};

pub(crate) const PROPERTIES: &[&str] = &[
    "id",
    "key",
    "name",
    "description",
    "version",
    "annotations",
    "dataInputSchema",
    "dataOutputSchema",
    "constants",
    "secrets",
    "start",
    "specVersion",
    "expressionLang",
    "timeouts",
    "errors",
    "keepActive",
    "auth",
    "events",
    "functions",
    "autoRetries",
    "retries",
    "states",
    "extensions",
    "metadata",
];

impl Ctx<'_> {
    pub fn read_workflow(&mut self, root: &Node) {
        if root.members().is_none() {
            self.wrong_type(root, "a workflow definition", "an object");
            return;
        }
        let root = Obj { node: root };
        self.identity(root);
        self.language(root);
        self.version(root);
        self.annotations(root);
        self.workflow.metadata = self.all_metadata(root, PROPERTIES);
        self.workflow.keep_active = self.boolean(root, "keepActive", false);
        self.auto_retries = self.boolean(root, "autoRetries", false);
        self.secrets(root);
        self.constants(root);

        let states = self
            .need_list(root, "a workflow definition", "states")
            .unwrap_or_default();
        if root.has("states")
            && states.is_empty()
            && let Some(node) = root.get("states").filter(|node| node.items().is_some())
        {
            let message = "'states' is empty: a workflow has at least one state";
            self.error(node, codes::EMPTY_LIST, message, "add a state".to_owned());
        }
        self.iteration_params(states);
        self.definitions(root);
        self.enter_flow();
        self.state_heads(states);
        if let Some(node) = root.get("timeouts") {
            self.workflow_timeouts(node);
        }
        self.read_states(states);
        let start = self.start(root);
        self.schemas(root, start, "state");
        self.extensions(root);
        if let Some(reader) = self.dialect.parts.errors {
            (reader.unused)(self);
        }
        self.check_custom_types();
        if !states.is_empty() {
            self.check_graph(start);
            self.check_schedule(root, start);
            self.start_event_values(start);
        }
        self.leave_flow(start);
        self.check_keep_active(root);
    }

    /// `metadata` and the additional properties, which serve the same purpose (section "Additional Properties"). A
    /// property that resembles a known name gets a warning.
    pub fn all_metadata(&mut self, root: Obj<'_>, known: &[&str]) -> Data {
        let mut metadata = self.metadata(root);
        let others = root.node.members().unwrap_or_default().iter();
        let others = others.filter(|member| !known.contains(&member.key()));
        let kept = std::mem::take(&mut self.kept);
        for member in others.chain(&kept) {
            self.additional(member, known);
            if metadata.get(member.key()).is_none() {
                metadata.set(member.key(), member.value().to_data());
            }
        }
        metadata
    }

    fn secrets(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("secrets") else {
            return;
        };
        let mut names = Vec::new();
        let mut seen = BTreeSet::new();
        let mut whole = true;
        let read = self.each(node, "secrets", |ctx, item| {
            match ctx.string(item, "a secret's name") {
                Some(name) if !seen.insert(name.clone()) => ctx.duplicate(item, "secret", &name),
                Some(name) => names.push(name),
                None => whole = false,
            }
        });
        self.workflow.secrets = names;
        self.secrets = (read && whole).then_some(seen);
    }

    fn constants(&mut self, root: Obj<'_>) {
        self.workflow.constants = Data::object();
        let Some(node) = root.get("constants") else {
            return;
        };
        self.inline_or_resource(node, "constants", |ctx, node| {
            if node.members().is_none() {
                ctx.wrong_type(
                    node,
                    "'constants'",
                    "an object, or the URI of a document with one",
                );
                return;
            }
            ctx.workflow.constants = ctx.static_data(node, "a constant");
        });
    }

    /// Expression functions are checked with all parameters that may be in scope at their uses.
    fn iteration_params(&mut self, states: &[Node]) {
        for state in states
            .iter()
            .filter(|state| state.get("inputCollection").is_some())
        {
            let name = state
                .get("iterationParam")
                .and_then(Node::as_str)
                .unwrap_or(DEFAULT_PARAM);
            let name: Arc<str> = meant_param(name).unwrap_or(name).into();
            if is_variable(&name) && !self.all_params.contains(&name) {
                self.all_params.push(name);
            }
        }
    }

    /// Reads named definitions before anything refers to them.
    fn definitions(&mut self, root: Obj<'_>) {
        if let Some(node) = root.get("auth") {
            self.auth_definitions(node);
        }
        if let Some(node) = root.get("errors") {
            self.errors(node);
        }
        if let Some(node) = root.get("retries") {
            self.retry_definitions(node);
        }
        if let Some(node) = root.get("events") {
            self.events(node);
        }
        if let Some(node) = root.get("functions") {
            self.functions(node);
        }
    }

    /// `word`: what the edition calls a state.
    pub fn schemas(&mut self, root: Obj<'_>, start: StateId, word: &str) {
        self.workflow.input_schema = self.schema(root, "dataInputSchema");
        self.workflow.output_schema = self.schema(root, "dataOutputSchema");
        let by_event = self
            .states
            .get(start.0 as usize)
            .is_some_and(|head| head.is_event);
        if let (true, Some(node)) = (by_event, root.get("dataInputSchema")) {
            // docs/language.md#decision-19.
            let why = format!("the workflow starts with an event {word}");
            self.ignored(node, "dataInputSchema", &why);
            self.workflow.input_schema = None;
        }
    }

    /// Extensions have no effect on how a workflow runs. They are kept as metadata with any contents, and nothing is
    /// fetched for them (docs/language.md#decision-96).
    fn extensions(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("extensions") else {
            return;
        };
        let mut kept = Vec::new();
        self.each(node, "extensions", |ctx, item| {
            if item.members().is_none() {
                ctx.wrong_type(item, "an extension", "an object");
                return;
            }
            ctx.extension(item);
            kept.push(item.to_data());
        });
        if !kept.is_empty() {
            self.workflow.metadata.set("extensions", Data::array(kept));
        }
    }

    /// One warning for each extension: what other runtimes put there is kept as it is (docs/language.md#decision-96).
    fn extension(&mut self, item: &Node) {
        const KNOWN: [&str; 2] = ["extensionId", "path"];
        let mut others = item.members().unwrap_or_default().iter();
        let other = others.find(|member| !KNOWN.contains(&member.key()));
        if let Some(other) = other {
            let message = format!(
                "an extension has no property '{}'; it is kept as it is",
                other.key()
            );
            let hint = did_you_mean(other.key(), KNOWN)
                .unwrap_or_else(|| "an extension has 'extensionId' and 'path'".to_owned());
            self.loose(other.value(), message, hint);
            return;
        }
        let missing: Vec<&str> = KNOWN
            .into_iter()
            .filter(|name| item.get(name).is_none())
            .collect();
        if !missing.is_empty() {
            let missing = and(&missing);
            let message = format!("the extension has no {missing}; it is kept as it is");
            self.loose(item, message, format!("add {missing}"));
        }
    }

    fn check_schedule(&mut self, root: Obj<'_>, start: StateId) {
        let head = self.states.get(start.0 as usize);
        let by_event = head.is_some_and(|head| head.is_event);
        let (Some(node), Some(schedule)) = (root.get("start"), &self.workflow.schedule) else {
            return;
        };
        let place = node.get("schedule").unwrap_or(node);
        if let When::Window(text) = &schedule.when {
            // Events start instances only within the window, even if other starts are allowed outside of it.
            if !schedule.exclusive && !by_event {
                let message = format!(
                    "the interval '{text}' restricts nothing: instances may be created outside of it too"
                );
                let hint = "add 'directInvoke: deny' to refuse that".to_owned();
                self.warn(place, codes::IGNORED_PROPERTY, message, hint);
            }
        } else if by_event {
            self.warn(
                place,
                codes::SCHEDULED_EVENT_START,
                "the workflow has a schedule and starts with an event state: events start instances, and those that the schedule starts wait for further ones",
                "let another state be the first, or remove the schedule".to_owned(),
            );
        }
    }

    fn check_keep_active(&mut self, root: Obj<'_>) {
        if !self.workflow.keep_active || self.terminates || self.workflow.timeout.is_some() {
            return;
        }
        if let Some(node) = root.get("keepActive") {
            self.warn(
                node,
                codes::KEEP_ACTIVE_ENDLESS,
                "with 'keepActive' an instance ends only by an end with 'terminate' or by 'workflowExecTimeout', and there is neither",
                format!("add one of {}", words(&["terminate: true", "timeouts.workflowExecTimeout"])),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::{STATES, findings, read_with, show, workflow};

    #[test]
    fn top_level() {
        let mut wrong = Vec::new();
        for (top, expected) in [
            ("states: []", "error empty-list /states 4"),
            ("states: {}", "error wrong-type /states 4"),
            ("name: x", "error missing-property  1"),
            ("expressionLang: jsonpath\nSTATES", ""),
            (
                "expressionLang: js\nSTATES",
                "error expression-language /expressionLang 4",
            ),
            (
                "keepActive: true\nSTATES",
                "warning keep-active-endless /keepActive 4",
            ),
            (
                "keepActive: true\ntimeouts: {workflowExecTimeout: PT1H}\nSTATES",
                "",
            ),
            (
                "keepActiv: true\nSTATES",
                "warning additional-property /keepActiv 4",
            ),
            ("loglevel: Info\nSTATES", ""),
            (
                "annotations: [1]\nSTATES",
                "error wrong-type /annotations/0 4",
            ),
            (
                "secrets: [A, A]\nSTATES",
                "error duplicate-name /secrets/1 4",
            ),
            (
                "constants: {a: '${ .b }'}\nSTATES",
                "warning expression-not-evaluated /constants/a 4",
            ),
            ("constants: [1]\nSTATES", "error wrong-type /constants 4"),
            ("start: B\nSTATES", "error unknown-state /start 4"),
            (
                "start: {stateName: A}\nSTATES",
                "warning loose-form /start 4",
            ),
            ("start: {schedule: R/PT1H}\nSTATES", ""),
            (
                "start: {schedule: 2024-01-01T00:00:00Z/PT1H}\nSTATES",
                "warning interval-without-r /start/schedule 4",
            ),
            (
                "start: {schedule: daily}\nSTATES",
                "error bad-interval /start/schedule 4",
            ),
            (
                "start: {schedule: {}}\nSTATES",
                "error missing-property /start/schedule 4",
            ),
            (
                "start: {schedule: {cron: '0 9 * * *', timezone: Europe/Berlin}}\nSTATES",
                "",
            ),
            (
                "start: {schedule: {cron: '0 25 * * *'}}\nSTATES",
                "error bad-cron /start/schedule/cron 4",
            ),
            (
                "start: {schedule: {cron: '0 9 * * *', timezone: Berlin}}\nSTATES",
                "error bad-time-zone /start/schedule/timezone 4",
            ),
            (
                "start: {schedule: {cron: {expression: '0 9 * * *', validUntil: x}}}\nSTATES",
                "error bad-date-time /start/schedule/cron/validUntil 4",
            ),
            (
                "start: {schedule: {cron: '0 9 * * *', interval: R/PT1H}}\nSTATES",
                "error exclusive-properties /start/schedule 4",
            ),
            (
                "dataInputSchema: {type: object}\nSTATES",
                "error missing-property /dataInputSchema 4",
            ),
            (
                "dataInputSchema: {schema: {type: objekt}}\nSTATES",
                "error bad-schema /dataInputSchema/schema 4",
            ),
            ("dataInputSchema: {schema: {type: object}}\nSTATES", ""),
            (
                "dataInputSchema: a.json\nSTATES",
                "error resource-not-found /dataInputSchema 4",
            ),
            (
                "functions: f.json\nSTATES",
                "error resource-not-found /functions 4",
            ),
            (
                "timeouts: {stateExecTimeout: 1 hour}\nSTATES",
                "error bad-duration /timeouts/stateExecTimeout 4",
            ),
            (
                "auth: [{name: a, properties: {username: u}}]\nSTATES",
                "error missing-property /auth/0/properties 4",
            ),
            (
                "auth: [{name: a, scheme: bearer, properties: {token: '${ $SECRETS.X }'}}]\nSTATES",
                "error unknown-secret /auth/0/properties/token 4",
            ),
            (
                "auth: [{name: a, scheme: oauth2, properties: {clientId: c, grantType: implicit}}]\nSTATES",
                "error unknown-value /auth/0/properties/grantType 4",
            ),
            (
                "auth: [{name: a, scheme: digest, properties: {}}]\nSTATES",
                "error unknown-value /auth/0/scheme 4",
            ),
            (
                "secrets: [S]\nauth: [{name: a, properties: $SECRETS.S}]\nSTATES",
                "",
            ),
        ] {
            let found = findings(&top.replace("STATES", STATES));
            if found != expected {
                wrong.push(format!("{top}\n{found}\ninstead of\n{expected}\n"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn resources_are_read_and_kept() {
        let body = "functions: file://f.json\nerrors: e.yaml\nconstants: c.json\nsecrets: s.json\nextensions: [{extensionId: x, path: x.yaml}]\nstates: [{name: A, type: operation, actions: [{functionRef: f}], onErrors: [{errorRef: x, end: true}], end: true}]\n";
        let resources = [
            (
                "file://f.json",
                r#"{"functions": [{"name": "f", "operation": "a.json#f"}]}"#,
            ),
            ("e.yaml", "- name: x"),
            ("c.json", r#"{"PI": 3}"#),
            ("s.json", r#"["KEY"]"#),
        ];
        let reading = read_with(body, &resources, &[]);
        assert_eq!(show(&reading), "");
        let workflow = reading.workflow.unwrap();
        assert_eq!(workflow.constants.to_string(), r#"{"PI":3}"#);
        assert_eq!(workflow.secrets, ["KEY"]);
        let extensions = workflow.metadata.get("extensions").unwrap().to_string();
        assert_eq!(extensions, r#"[{"extensionId":"x","path":"x.yaml"}]"#);
        assert_eq!(reading.resources_used.len(), 4);
    }

    #[test]
    fn findings_in_a_resource_are_shown_at_the_reference() {
        let body = format!("functions: f.yaml\n{STATES}");
        let reading = read_with(&body, &[("f.yaml", "\n- name: f\n  opration: x\n")], &[]);
        assert_eq!(show(&reading), "error unknown-property /functions 4");
        let first = reading.diagnostics.iter().next().unwrap();
        assert!(
            first
                .message
                .starts_with("in 'f.yaml', line 3, at '/0/opration': "),
            "{}",
            first.message
        );
    }

    #[test]
    fn additional_properties_become_metadata() {
        let workflow = workflow(&format!("metadata: {{a: x}}\nloglevel: Info\n{STATES}"));
        assert_eq!(
            workflow.metadata.to_string(),
            r#"{"a":"x","loglevel":"Info"}"#
        );
    }
}
