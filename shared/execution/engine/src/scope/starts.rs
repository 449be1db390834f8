//! Events that start instances of a workflow of tasks (DSL 1.0, "Event-driven scheduling").

use std::sync::Arc;

use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_model::trace::Trace;
use swirl_model::workflow::{Retention, StartOn, Until};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::definition::{Definition, whole_pattern};
use crate::scope::env::Env;
use crate::scope::eval::View;
use crate::scope::listening::{comparable, read_event};
use crate::scope::task_view::TaskView;

impl Definition {
    /// Whether an event fits the filter at a place of those that start instances, as far as that needs expressions over
    /// the event. Returns the values that it must share with the other events of its set.
    pub fn fits_start(
        &self,
        place: usize,
        event: &CloudEvent,
        at: Timestamp,
    ) -> Option<Vec<(Arc<str>, String)>> {
        let starts = self.starts()?;
        let filter = starts.filters().nth(place)?;
        let matches = |(name, text): &(Arc<str>, String)| {
            let found = event.attribute(name);
            found.is_some_and(|found| {
                let pattern = self.patterns.get(&whole_pattern(text));
                found == *text || pattern.is_some_and(|pattern| pattern.is_match(&found))
            })
        };
        if !filter.patterns.iter().all(matches) {
            return None;
        }
        let (header, env) = self.no_instance(at);
        let view = self.view_of_start(&header, &env);
        let value = |template| view.template(template, &Data::NULL);
        let fits = |test| view.data_fits(test, event, &Data::NULL);
        if !filter.data.as_ref().is_none_or(fits) {
            return None;
        }
        let whole = event.to_data();
        let mut shares = Vec::new();
        for rule in filter.correlate.iter().filter(|rule| !rule.is_indexed) {
            let found = view.value(rule.from, &whole).ok()?;
            if found.is_null() {
                return None;
            }
            let found = comparable(&found);
            match &rule.expect {
                Some(wanted) => {
                    let wanted = value(wanted).ok()?;
                    if wanted.is_null() || comparable(&wanted) != found {
                        return None;
                    }
                }
                None => shares.push((rule.key.clone(), found)),
            }
        }
        Some(shares)
    }

    fn starts(&self) -> Option<&StartOn> {
        self.workflow.tasks.as_ref()?.starts.as_ref()
    }

    /// The input of an instance that events start.
    pub(crate) fn input_of_start(&self, events: &[StartEvent]) -> Option<Data> {
        let starts = self.starts().filter(|_| !events.is_empty())?;
        let events = events.iter();
        let read = events.map(|start| read_event(starts.read, &start.event));
        Some(Data::array(read.collect()))
    }

    /// Whether these events are all that an instance starts with. A longer list than an input may be is over too, so
    /// that it doesn't grow for ever: its start is refused as any with such an input.
    ///
    /// # Errors
    /// The condition over them fails.
    pub fn ends_list(&self, events: &[StartEvent], at: Timestamp) -> Result<bool, WorkflowError> {
        let Some(input) = self.input_of_start(events) else {
            return Ok(false);
        };
        if self.sizes.check_data(&input, "the input").is_err() {
            return Ok(true);
        }
        let until = self.starts().and_then(|starts| starts.until.as_ref());
        let Some(Until::Condition(test)) = until else {
            return Ok(false);
        };
        let (header, env) = self.no_instance(at);
        self.view_of_start(&header, &env).condition(*test, &input)
    }

    fn view_of_start<'v>(&'v self, header: &'v Header, env: &'v Env) -> View<'v> {
        View {
            def: self,
            env,
            header,
            params: &[],
            last_error: None,
            task: TaskView::default(),
            error: None,
        }
    }

    /// What expressions see that are evaluated before the instance exists.
    fn no_instance(&self, at: Timestamp) -> (Header, Env) {
        let env = Env {
            now: at,
            ..Env::default()
        };
        let header = Header {
            id: InstanceId::new(""),
            definition: self.id.clone(),
            version: self.id.version.to_string(),
            input: Data::NULL,
            started_at: at,
            parent: None,
            continued_from: None,
            scheduled_at: None,
            key: None,
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Trace::default(),
            retention: Retention::default(),
        };
        (header, env)
    }
}
