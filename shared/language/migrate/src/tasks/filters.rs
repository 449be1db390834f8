//! The filters and schemas of a state's data.

use swirl_model::Data;
use swirl_model::workflow::{Schema, State};

use super::jq_text::filter;
use super::writer::{Writer, append, do_list, marked, object};

impl Writer<'_> {
    /// The filters and schemas of a state's data around its work.
    pub fn filtered(&mut self, state: &State, work: Data) -> Data {
        let has = |key: &str| work.get(key).is_some();
        let takes = state.input.is_some() || state.input_schema.is_some();
        let gives = state.output.is_some() || state.output_schema.is_some();
        let is_taken = (takes && has("input")) || (gives && has("output"));
        let work = match is_taken {
            true => do_list(vec![("work".to_owned(), work)]),
            false => work,
        };
        let mut task = Data::object();
        let mut input = Data::object();
        if let Some(schema) = &state.input_schema {
            self.cannot_if(
                state.input.is_some(),
                "a schema is checked after the input filter; in DSL 1.0 it is before",
            );
            self.schema(&mut input, schema);
        }
        if let Some(id) = state.input {
            let text = self.expr(id, ".");
            input.set("from", marked(&filter(&text)));
        }
        if input.as_object().is_some_and(|all| !all.is_empty()) {
            task.set("input", input);
        }
        append(&mut task, &work);
        let mut output = Data::object();
        if let Some(id) = state.output {
            let text = self.expr(id, ".");
            output.set("as", marked(&filter(&text)));
        }
        if let Some(schema) = &state.output_schema {
            self.schema(&mut output, schema);
        }
        if output.as_object().is_some_and(|all| !all.is_empty()) {
            task.set("output", output);
        }
        task
    }

    pub fn schema(&mut self, to: &mut Data, schema: &Schema) {
        if !schema.fail {
            self.note("data that doesn't fit a schema was logged ('failOnValidationErrors: false'); it isn't checked any more");
            return;
        }
        let document = schema.schema.clone();
        let schema = object([("format", Data::string("json")), ("document", document)]);
        to.set("schema", schema);
    }
}
