//! Tasks that listen (DSL 1.0, "Listen"): their waits, and which events they take.
//!
//! The wait of such a task belongs to its frame, so it stays while the tasks for an event run. If a filter has an
//! expression over the event, or if the task takes more than one event, the wait stays open at the backend too: each event
//! is offered, in order, and the task says which ones it consumes. So none is lost between two of them.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use swirl_model::cloudevent::DataForm;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{Frame, ListenRun, Queued};
use swirl_model::workflow::{Consume, DataTest, EventRead, Listen, StateKind, TaskFilter};
use swirl_model::{CloudEvent, Data};

use crate::definition::{Definition, whole_pattern};
use crate::scope::Ctx;
use crate::scope::eval::View;

/// How an event came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// The task decides whether it consumes the event.
    pub offered: bool,
    /// It came before the wait began.
    pub early: bool,
}

/// The filter that an event fits.
pub(crate) struct Heard {
    /// It is one of the events that stop the task.
    pub stops: bool,
    pub filter: u16,
    /// The values that the following events must have.
    pub keys: Vec<(Arc<str>, String)>,
}

impl Ctx<'_> {
    /// The depth of the frame that listens with this wait.
    pub(crate) fn listening(&self, wait: u32) -> Option<usize> {
        let mut frames = self.scope.frames.iter();
        frames.position(|frame| wait_of(frame) == Some(wait))
    }

    pub(crate) fn change_listen(&mut self, depth: usize, change: impl FnOnce(&mut ListenRun)) {
        let mut frames = self.scope.frames.clone();
        let frame = frames.get_mut(depth);
        if let Some(run) = frame.and_then(|frame| frame.listen.as_mut()) {
            change(run);
            self.emit(Event::Frames(frames));
        }
    }

    /// Ends the waits of the frames from this depth on. Everything else of them stays.
    pub(crate) fn stop_listening(&mut self, depth: usize) {
        for depth in depth..self.scope.frames.len() {
            if let Some(wait) = wait_of(&self.scope.frames[depth]) {
                self.change_listen(depth, |run| run.wait = None);
                self.command(Command::Unsubscribe(wait));
            }
        }
    }

    /// The task takes no more events; those in its queue still have their turn.
    pub(crate) fn close_listen(&mut self, depth: usize) {
        self.change_listen(depth, |run| run.is_closed = true);
        let wait = self.scope.frames.get(depth).and_then(wait_of);
        if let Some(wait) = wait {
            self.change_listen(depth, |run| run.wait = None);
            self.command(Command::Unsubscribe(wait));
        }
    }

    /// Consumes an event of the queue.
    pub(crate) fn take_queued(&mut self, queued: &Queued) {
        self.emit(Event::EventConsumed {
            name: queued.name.clone(),
            source: queued.source.clone(),
            id: queued.id.clone(),
        });
        if let Some(wait) = queued.offer {
            self.command(Command::Take {
                wait,
                key: format!("{}\n{}", queued.source, queued.id),
            });
        }
    }

    /// The view for expressions of a task that encloses the current one.
    pub(crate) fn view_of<'v>(&'v self, frame: &'v Frame) -> View<'v> {
        let mut view = self.view();
        view.params = &self.scope.params[..frame.params as usize];
        view.task.state = Some(frame.state);
        view.task.run = Some(&frame.task);
        view
    }

    /// The input of a task around the current one, which keeps it if its list runs.
    pub(crate) fn task_input(&self, frame: &Frame) -> Data {
        let kept = frame.task.input.as_ref();
        kept.unwrap_or(&self.scope.data).clone()
    }

    /// The filter that an event fits, out of those that still take one. The events that stop the task come first.
    pub(crate) fn heard(
        &self,
        frame: &Frame,
        listen: &Listen,
        event: &CloudEvent,
        early: bool,
    ) -> Option<Heard> {
        let run = frame.listen.as_deref()?;
        let among = |consume: &Consume, filled: &[u16], stops| {
            let mut filters = (0u16..).zip(&consume.filters);
            filters.find_map(|(index, filter)| {
                if consume.all && filled.contains(&index) {
                    return None;
                }
                let keys = self.fits_filter(frame, run, filter, event, early)?;
                Some(Heard {
                    stops,
                    filter: index,
                    keys,
                })
            })
        };
        let stop = listen.stops();
        let stop = stop.and_then(|stops| among(stops, &run.stopped, true));
        stop.or_else(|| among(&listen.to, &run.filled, false))
    }

    /// Whether an event fits a filter. Returns the values that it brings. An expression that fails on an event doesn't
    /// fit it: whoever sends events can't fault those who listen.
    fn fits_filter(
        &self,
        frame: &Frame,
        run: &ListenRun,
        filter: &TaskFilter,
        event: &CloudEvent,
        early: bool,
    ) -> Option<Vec<(Arc<str>, String)>> {
        let slots = run.wait.iter().flat_map(|wait| &wait.slots);
        let mut known = slots.flat_map(|slot| &slot.filters);
        let known = known.find(|known| known.def == filter.event)?;
        if !known.fits(event) || early && known.correlation.is_empty() {
            return None;
        }
        let matches = |(name, text): &(Arc<str>, String)| {
            let found = event.attribute(name);
            found.is_some_and(|found| {
                let pattern = self.def.patterns.get(&whole_pattern(text));
                found == *text || pattern.is_some_and(|pattern| pattern.is_match(&found))
            })
        };
        if !filter.patterns.iter().all(matches) {
            return None;
        }
        let view = self.view_of(frame);
        let fits = |test| view.data_fits(test, event, &self.task_input(frame));
        if !filter.data.as_ref().is_none_or(fits) {
            return None;
        }
        let mut keys = Vec::new();
        let mut whole = None;
        for rule in filter.correlate.iter().filter(|rule| !rule.is_indexed) {
            let whole = whole.get_or_insert_with(|| event.to_data());
            let found = view.value(rule.from, whole).ok()?;
            if found.is_null() {
                return None;
            }
            let found = comparable(&found);
            let agreed = run.keys.iter().find(|(key, _)| *key == rule.key);
            let wanted = match &rule.expect {
                Some(value) => {
                    let value = view.template(value, &self.task_input(frame)).ok()?;
                    // Null matches nothing (docs/language.md#decision-86).
                    Some((!value.is_null()).then(|| comparable(&value))?)
                }
                None => agreed.map(|(_, value)| value.clone()),
            };
            match wanted {
                Some(wanted) if wanted != found => return None,
                Some(_) => {}
                None => keys.push((rule.key.clone(), found)),
            }
        }
        Some(keys)
    }
}

impl View<'_> {
    /// Whether the data of an event pass a test. `input` is that of the task.
    pub(crate) fn data_fits(&self, test: &DataTest, event: &CloudEvent, input: &Data) -> bool {
        let payload = event.data.clone().unwrap_or_default();
        match test {
            DataTest::Holds(test) => self.condition(*test, &payload).unwrap_or(false),
            DataTest::Loose(test, text) => {
                let holds = self.value(*test, &payload).ok();
                let holds = holds.and_then(|value| value.as_bool());
                holds.unwrap_or_else(|| payload.as_str() == Some(text))
            }
            DataTest::Equals(wanted) => {
                let wanted = self.template(wanted, input);
                wanted.is_ok_and(|wanted| wanted == payload)
            }
        }
    }
}

/// The text by which correlations compare a value: the members of an object have no order.
pub(crate) fn comparable(value: &Data) -> String {
    if !value.is_object() && value.as_array().is_none() {
        return value.to_text();
    }
    let mut value = serde_json::Value::from(value);
    value.sort_all_objects();
    value.to_string()
}

fn wait_of(frame: &Frame) -> Option<u32> {
    let run = frame.listen.as_ref()?;
    run.wait.as_ref().map(|wait| wait.wait)
}

/// The value of an event in the workflow's data.
pub(crate) fn read_event(read: EventRead, event: &CloudEvent) -> Data {
    match read {
        EventRead::Data => event.data.clone().unwrap_or_default(),
        EventRead::Envelope => event.to_data(),
        EventRead::Raw => match &event.data {
            None => Data::NULL,
            Some(data) => match (event.data_form(), data.as_str()) {
                (DataForm::Text, Some(text)) => Data::string(text),
                (DataForm::Base64, Some(text)) => Data::string(decoded(text)),
                _ => Data::string(data.to_string()),
            },
        },
    }
}

/// The text of Base64, if it is one.
fn decoded(base64: &str) -> Cow<'_, str> {
    let bytes = STANDARD.decode(base64).ok();
    match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => text.into(),
        None => base64.into(),
    }
}

/// The task that a frame belongs to, if it listens.
pub(crate) fn listen_of<'d>(def: &'d Definition, frame: &Frame) -> Option<&'d Listen> {
    match &def.workflow[frame.state].kind {
        StateKind::Listen(listen) => Some(listen),
        _ => None,
    }
}
