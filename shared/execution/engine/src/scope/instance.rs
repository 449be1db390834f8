//! The records of a new instance.

use std::sync::Arc;

use swirl_model::error::names;
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{Header, ParentLink};
use swirl_model::scope::{Role, Scope, StartEvent};
use swirl_model::time::Timestamp;
use swirl_model::trace::{Trace, TraceContext};
use swirl_model::workflow::{Template, TimeoutOverride, Version};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::definition::Definition;
use crate::scope::env::Env;
use crate::scope::eval::View;
use crate::scope::task_view::TaskView;

/// The longest business key of an instance.
const KEY_BYTES_MAX: usize = 1000;

/// The values that an instance is started with.
#[derive(Debug, Clone, Default)]
pub struct NewInstance {
    pub input: Data,
    pub key: Option<String>,
    pub parent: Option<ParentLink>,
    pub continued_from: Option<InstanceId>,
    pub scheduled_at: Option<Timestamp>,
    pub timeout: Option<TimeoutOverride>,
    pub depth: u16,
    /// Without meaning if events start the instance: the events have their own hops.
    pub hops: u32,
    pub events: Vec<StartEvent>,
    /// Without meaning if events start the instance: it takes theirs.
    pub trace: Trace,
}

/// The CloudEvents extension that names the instance which produced the event.
pub(crate) const ORIGIN: &str = "swirlorigin";

/// The CloudEvents extension with the number of instances that led to that one without a wait.
pub(crate) const HOPS: &str = "swirlhops";

/// The hops of an instance that this event starts.
fn hops_of(event: &CloudEvent) -> u32 {
    match event.attribute(ORIGIN) {
        None => 0,
        Some(_) => {
            let before = event
                .attribute(HOPS)
                .and_then(|text| text.parse::<u32>().ok());
            before.unwrap_or(0).saturating_add(1)
        }
    }
}

/// Creates the records of a new instance. Its input must be an object (docs/language.md#decision-12 and #decision-59).
pub fn new_instance(
    def: &Arc<Definition>,
    id: InstanceId,
    new: NewInstance,
    at: Timestamp,
) -> Result<(Header, Scope), WorkflowError> {
    if !new.input.is_object() && def.workflow.tasks.is_none() {
        let message = format!(
            "the input must be an object, not {}",
            new.input.kind_in_words()
        );
        return Err(WorkflowError::new(names::INPUT_VALIDATION, message));
    }
    let mut new = new;
    if let Some(input) = def.input_of_start(&new.events) {
        new.input = input;
    }
    def.sizes.check_data(&new.input, "the input")?;
    if new.depth > def.depth_max {
        let message = format!("sub-workflows are nested deeper than {}", def.depth_max);
        return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
    }
    let hops = new.events.iter().map(|start| hops_of(&start.event));
    let hops = hops.max().unwrap_or(0).max(new.hops);
    if hops > def.sizes.chain {
        let message = format!(
            "more than {} instances started each other without waiting for anything: \
             the workflow seems to start itself endlessly",
            def.sizes.chain
        );
        return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
    }
    let mut header = Header {
        id,
        definition: def.id.clone(),
        version: def.id.version.to_string(),
        input: new.input,
        started_at: at,
        parent: new.parent,
        continued_from: new.continued_from,
        scheduled_at: new.scheduled_at,
        key: new.key,
        instance_key: None,
        timeout: new.timeout,
        depth: new.depth,
        hops,
        trace: new.trace,
        retention: def.workflow.retention,
    };
    if header.trace.cause.is_none() {
        let mut events = new.events.iter();
        header.trace.cause = events.find_map(|start| TraceContext::of(&start.event));
    }
    header.version = version_of(def, &header, at)?;
    if let Some(template) = &def.workflow.instance_key {
        let key = over_input(def, &header, template, at)?;
        let key = (!key.is_null()).then(|| key.to_text());
        if let Some(long) = key.as_ref().filter(|key| key.len() > KEY_BYTES_MAX) {
            let size = long.len();
            let message = format!("the key is {size} bytes long; the limit is {KEY_BYTES_MAX}");
            return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        header.instance_key = key;
    }
    let mut root = Scope::new(ScopeId::root(), Role::Root, header.input.clone());
    root.start_events = new.events;
    Ok((header, root))
}

/// The version as `$WORKFLOW` shows it.
pub(crate) fn version_of(
    def: &Arc<Definition>,
    header: &Header,
    at: Timestamp,
) -> Result<String, WorkflowError> {
    Ok(match def.workflow.version {
        Version::Literal(_) => def.id.version.to_string(),
        Version::Expression(expression) => {
            let template = Template::Expression(expression);
            over_input(def, header, &template, at)?.to_text()
        }
        Version::Latest => Version::LATEST.to_owned(),
    })
}

/// Evaluates an expression over the input alone.
fn over_input(
    def: &Arc<Definition>,
    header: &Header,
    template: &Template,
    at: Timestamp,
) -> Result<Data, WorkflowError> {
    let env = Env {
        now: at,
        ..Env::default()
    };
    let view = View {
        def,
        env: &env,
        header,
        params: &[],
        last_error: None,
        task: TaskView::default(),
        error: None,
    };
    view.template(template, &header.input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::workflow::{Flow, StateId, Workflow};

    fn definition() -> Arc<Definition> {
        let state = swirl_model::workflow::State::default();
        let workflow = Workflow {
            id: "w".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: vec![StateId(0)],
                ..Flow::default()
            }],
            states: vec![state],
            ..Workflow::default()
        };
        Definition::compile(workflow).unwrap()
    }

    fn hops(attributes: &[(&str, &str)], hops: u32) -> Result<u32, WorkflowError> {
        let mut event: CloudEvent = serde_json::from_value(serde_json::json!({
            "id": "1", "source": "/s", "type": "t"
        }))
        .unwrap();
        for (name, value) in attributes {
            event
                .attributes
                .insert((*name).to_owned(), Data::string(*value));
        }
        let start = StartEvent { def: 0, event };
        let new = NewInstance {
            input: Data::object(),
            events: vec![start],
            hops,
            ..NewInstance::default()
        };
        let made = new_instance(&definition(), InstanceId::new("i"), new, Timestamp(0));
        made.map(|(header, _)| header.hops)
    }

    #[test]
    fn instances_that_start_each_other_are_counted() {
        // The value comes from outside and may be anything.
        assert_eq!(hops(&[], 0), Ok(0));
        assert_eq!(hops(&[(HOPS, "7")], 0), Ok(0));
        assert_eq!(hops(&[(ORIGIN, "a")], 0), Ok(1));
        assert_eq!(hops(&[(ORIGIN, "a"), (HOPS, "7")], 0), Ok(8));
        assert_eq!(hops(&[(ORIGIN, "a"), (HOPS, "much")], 0), Ok(1));
        assert_eq!(hops(&[], 1_000), Ok(1_000));
        for refused in [hops(&[], 1_001), hops(&[(ORIGIN, "a"), (HOPS, "1000")], 0)] {
            assert_eq!(refused.unwrap_err().name, names::LIMIT_EXCEEDED);
        }
    }
}
