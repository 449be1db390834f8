//! The document itself.

use swirl_model::Data;
use swirl_model::instance::Retention;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{Version, Workflow};

use super::target::{label, task_version};
use super::writer::{Writer, append, list, marked, object};

impl Writer<'_> {
    pub fn document(&mut self) -> Data {
        let workflow = self.workflow;
        let mut root = object([("document", self.head())]);
        self.cannot_if(
            workflow.instance_key.is_some(),
            "'key' is an expression that names instances; DSL 1.0 has no such property",
        );
        self.cannot_if(
            workflow.keep_active,
            "'keepActive' keeps the instance after its last state; in DSL 1.0 it ends then",
        );
        if let Some(schedule) = self.schedule() {
            root.set("schedule", schedule);
        }
        let authentications = self.authentications();
        let mut used = Data::object();
        if authentications
            .as_object()
            .is_some_and(|all| !all.is_empty())
        {
            used.set("authentications", authentications);
        }
        if !workflow.secrets.is_empty() {
            let names = workflow.secrets.iter().map(Data::string).collect();
            used.set("secrets", Data::array(names));
        }
        if used.as_object().is_some_and(|all| !all.is_empty()) {
            root.set("use", used);
        }
        for (name, schema) in [
            ("input", &workflow.input_schema),
            ("output", &workflow.output_schema),
        ] {
            if let Some(schema) = schema {
                let mut part = Data::object();
                self.schema(&mut part, schema);
                if part.as_object().is_some_and(|all| !all.is_empty()) {
                    root.set(name, part);
                }
            }
        }
        self.workflow_timeout(&mut root);
        let tasks = self.flow_tasks(Workflow::ROOT);
        root.set("do", list(tasks));
        root
    }

    fn workflow_timeout(&mut self, root: &mut Data) {
        let Some(timeout) = &self.workflow.timeout else {
            return;
        };
        self.cannot_if(
            timeout.run_before.is_some(),
            "a state runs before the workflow's timeout ends it ('runBefore')",
        );
        self.cannot_if(
            !timeout.interrupt,
            "the workflow's timeout lets running actions finish ('interrupt' is false); in DSL 1.0 it interrupts them",
        );
        self.note(
            "an instance that exceeds the workflow's timeout is faulted; before, it was terminated",
        );
        let after = self.period(timeout.duration, ".");
        root.set("timeout", object([("after", after)]));
    }

    fn head(&mut self) -> Data {
        let workflow = self.workflow;
        let name = label(&workflow.id);
        let id = self.target.id_of(&workflow.id);
        self.note(format!("its id '{}' is '{id}' now", workflow.id));
        let version = match &workflow.version {
            Version::Literal(text) => task_version(text),
            Version::Latest => Some("1.0.0".to_owned()),
            Version::Expression(_) => None,
        };
        let version = version.filter(|version| version != Version::LATEST);
        if version.is_none() {
            self.cannot("its version is not a semantic version");
        }
        let mut head = object([
            ("dsl", Data::string("1.0.3")),
            ("namespace", Data::string(self.target.namespace.as_str())),
            ("name", Data::string(name)),
            ("version", Data::string(version.unwrap_or_default())),
        ]);
        if let Some(name) = &workflow.name {
            head.set("title", Data::string(name.as_str()));
        }
        if let Some(text) = &workflow.description {
            head.set("summary", Data::string(text.as_str()));
        }
        let metadata = self.metadata();
        if metadata.as_object().is_some_and(|all| !all.is_empty()) {
            head.set("metadata", metadata);
        }
        head
    }

    fn metadata(&mut self) -> Data {
        let workflow = self.workflow;
        let mut metadata = Data::object();
        append(&mut metadata, &workflow.metadata);
        if let Some(key) = &workflow.key {
            metadata.set("key", Data::string(key.as_str()));
        }
        if !workflow.annotations.is_empty() {
            let all = workflow.annotations.iter().map(Data::string).collect();
            metadata.set("annotations", Data::array(all));
        }
        let mut own = Data::object();
        let mut search = Data::object();
        for attribute in &workflow.search {
            let value = self.expr(attribute.value, ".");
            let kind = Data::string(attribute.kind.as_str());
            search.set(
                &attribute.name,
                object([("value", marked(&value)), ("type", kind)]),
            );
        }
        let mut retention = Data::object();
        for outcome in Retention::OUTCOMES {
            if let Some(ms) = workflow.retention.of(outcome) {
                let duration = IsoDuration::from_millis(ms).to_string();
                retention.set(outcome.as_str(), Data::string(duration));
            }
        }
        let mut history = Data::object();
        if let Some(recording) = workflow.recording {
            history.set("data", Data::string(recording.as_str()));
        }
        if let Some(ms) = workflow.keep_data_ms {
            let duration = IsoDuration::from_millis(ms).to_string();
            history.set("keepData", Data::string(duration));
        }
        for (name, part) in [
            ("search", search),
            ("retention", retention),
            ("history", history),
        ] {
            if part.as_object().is_some_and(|all| !all.is_empty()) {
                own.set(name, part);
            }
        }
        if own.as_object().is_some_and(|all| !all.is_empty()) {
            metadata.set("swirl", own);
        }
        metadata
    }
}
