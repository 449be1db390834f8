//! The definition itself.

use swirl_model::Data;
use swirl_model::instance::Retention;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{Language, Schema, Version};

use super::writer::{SetIf, Writer, is_filled};

impl Writer<'_> {
    pub fn document(&mut self) -> Data {
        let workflow = self.workflow;
        let mut root = Data::object();
        let named = if workflow.key.is_some() { "key" } else { "id" };
        root.set(named, Data::string(workflow.id.as_str()));
        root.set_if("name", workflow.name.as_deref().map(Data::string));
        root.set_if(
            "description",
            workflow.description.as_deref().map(Data::string),
        );
        match &workflow.version {
            Version::Literal(text) if text.is_empty() => {}
            Version::Literal(text) => root.set("version", Data::string(text.as_str())),
            Version::Latest => root.set("version", Data::string(Version::LATEST)),
            Version::Expression(id) => {
                let version = self.expression(*id);
                root.set("version", version);
            }
        }
        root.set("specVersion", Data::string("0.8"));
        if self.language == Language::JsonPath {
            root.set("expressionLang", Data::string("jsonpath"));
        }
        let annotations = workflow.annotations.iter().map(Data::string).collect();
        root.list("annotations", annotations);
        root.set_if(
            "dataInputSchema",
            workflow.input_schema.as_ref().map(schema),
        );
        root.set_if(
            "dataOutputSchema",
            workflow.output_schema.as_ref().map(schema),
        );
        if is_filled(&workflow.constants) {
            root.set("constants", workflow.constants.clone());
        }
        root.list(
            "secrets",
            workflow.secrets.iter().map(Data::string).collect(),
        );
        if workflow.instance_key.is_some() {
            self.cannot("'key' is an expression that names instances; 0.8 has no such property");
        }
        let reads_errors = |text: &str| text.contains("WORKFLOW") && text.contains("error");
        if workflow.problems.is_some()
            && workflow.expressions.iter().any(|it| reads_errors(&it.text))
        {
            self.cannot("an expression reads an error, which has 'type', 'status' and 'instance' of RFC 7807");
        } else if workflow.problems.is_some() {
            self.note("errors have no 'type', 'status' and 'instance' of RFC 7807 any more");
        }
        self.start(&mut root);
        self.timeout(&mut root);
        let auth = self.auth();
        root.list("auth", auth);
        let errors = self.error_definitions();
        root.list("errors", errors);
        let events = self.events();
        root.list("events", events);
        let functions = self.functions();
        root.list("functions", functions);
        root.flag("autoRetries", self.auto_retries);
        let states = self.states();
        let retries = self.retry_definitions();
        root.list("retries", retries);
        root.flag("keepActive", workflow.keep_active);
        let (mut metadata, extensions) = parted(&workflow.metadata);
        root.set_if("extensions", extensions);
        if let Some(own) = self.own_metadata() {
            metadata.get_or_insert_with(Data::object).set("swirl", own);
        }
        root.set_if("metadata", metadata);
        root.list("states", states);
        root
    }

    /// The part of the metadata that the runtime reads.
    fn own_metadata(&mut self) -> Option<Data> {
        let mut search = Data::object();
        for attribute in &self.workflow.search {
            let mut declared = Data::object();
            let value = self.expression(attribute.value);
            declared.set("value", value);
            declared.set("type", Data::string(attribute.kind.as_str()));
            search.set(&attribute.name, declared);
        }
        let mut retention = Data::object();
        for outcome in Retention::OUTCOMES {
            if let Some(ms) = self.workflow.retention.of(outcome) {
                let duration = IsoDuration::from_millis(ms).to_string();
                retention.set(outcome.as_str(), Data::string(duration));
            }
        }
        let mut history = Data::object();
        if let Some(recording) = self.workflow.recording {
            history.set("data", Data::string(recording.as_str()));
        }
        if let Some(ms) = self.workflow.keep_data_ms {
            let duration = IsoDuration::from_millis(ms).to_string();
            history.set("keepData", Data::string(duration));
        }
        let mut own = Data::object();
        for (name, part) in [
            ("search", search),
            ("retention", retention),
            ("history", history),
        ] {
            own.set_if(name, Some(part).filter(is_filled));
        }
        Some(own).filter(is_filled)
    }

    fn timeout(&mut self, root: &mut Data) {
        let Some(timeout) = &self.workflow.timeout else {
            return;
        };
        let mut exec = Data::object();
        let duration = self.period(timeout.duration);
        exec.set("duration", duration);
        exec.flag("interrupt", timeout.interrupt);
        let run_before = timeout
            .run_before
            .map(|id| Data::string(&*self.workflow[id].name));
        exec.set_if("runBefore", run_before);
        let mut timeouts = Data::object();
        timeouts.set("workflowExecTimeout", exec);
        root.set("timeouts", timeouts);
    }
}

/// Extensions are kept in the metadata; this separates them again.
fn parted(metadata: &Data) -> (Option<Data>, Option<Data>) {
    let extensions = metadata
        .get("extensions")
        .filter(|list| list.as_array().is_some());
    let mut others = Data::object();
    for (key, value) in metadata
        .as_object()
        .into_iter()
        .flat_map(|members| members.iter())
    {
        let key = Data(key.clone()).to_text();
        if extensions.is_none() || key != "extensions" {
            others.set(&key, Data(value.clone()));
        }
    }
    (Some(others).filter(is_filled), extensions)
}

fn schema(schema: &Schema) -> Data {
    let mut data = Data::object();
    data.set("schema", schema.schema.clone());
    if !schema.fail {
        data.set("failOnValidationErrors", Data::bool(false));
    }
    data
}
