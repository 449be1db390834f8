//! Listening for events (DSL 1.0, "Listen", "Event Consumption Strategy").

use std::sync::Arc;

use super::*;

/// Waits for events. The output is the list of those that it consumed, in that order.
#[derive(Debug, Clone)]
pub struct Listen {
    /// A call that gives the list of the messages, in place of events.
    pub source: Option<ListId>,
    /// Each call gives one message, which is processed before the next call. This says when there are enough.
    pub stepwise: Option<Enough>,
    pub to: Consume,
    /// When it stops; `None`: with the first event, or with the last one that `to` asks for.
    pub until: Option<Until>,
    pub read: EventRead,
    pub each: Option<EachEvent>,
}

impl Listen {
    /// The filters of the events that stop it.
    pub fn stops(&self) -> Option<&Consume> {
        stops(&self.until)
    }

    pub fn filters(&self) -> impl Iterator<Item = &TaskFilter> {
        all_filters(&self.to, &self.until)
    }

    /// Whether the events consumed so far are needed later.
    pub fn keeps_consumed(&self) -> bool {
        let tests = matches!(self.stepwise, Some(Enough::Until(_) | Enough::While(_)));
        self.each.is_none() || tests || matches!(self.until, Some(Until::Condition(_)))
    }
}

/// Events that start an instance. Its input is the list of them.
#[derive(Debug, Clone)]
pub struct StartOn {
    pub to: Consume,
    /// When a list of any number of events is long enough. Without it one event starts an instance, or all of `to`.
    pub until: Option<Until>,
    pub read: EventRead,
}

impl StartOn {
    /// The filters of the events that end the list.
    pub fn stops(&self) -> Option<&Consume> {
        stops(&self.until)
    }

    /// All filters, those that end the list last.
    pub fn filters(&self) -> impl Iterator<Item = &TaskFilter> {
        all_filters(&self.to, &self.until)
    }
}

fn stops(until: &Option<Until>) -> Option<&Consume> {
    match until {
        Some(Until::Events(stops)) => Some(stops),
        Some(Until::Condition(_)) | None => None,
    }
}

fn all_filters<'a>(
    to: &'a Consume,
    until: &'a Option<Until>,
) -> impl Iterator<Item = &'a TaskFilter> {
    let stops = stops(until).into_iter();
    let filters = to.filters.iter();
    filters.chain(stops.flat_map(|stops| &stops.filters))
}

/// Events to consume.
#[derive(Debug, Clone, Default)]
pub struct Consume {
    /// One event for each filter. Otherwise an event for any of them.
    pub all: bool,
    pub filters: Vec<TaskFilter>,
}

#[derive(Debug, Clone)]
pub enum Until {
    /// Over the list of the events consumed so far.
    Condition(ExprId),
    /// These events. They aren't part of the output.
    Events(Consume),
}

/// The conditions that an event must meet. Those that need no expression over the event are in [`Workflow::events`].
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    pub event: EventId,
    /// Attributes that are equal to a text or match it as a regular expression, as a whole.
    pub patterns: Vec<(Arc<str>, String)>,
    pub data: Option<DataTest>,
    pub correlate: Vec<Correlate>,
}

impl Consume {
    /// Whether nothing more is missing once these filters have an event.
    pub fn is_complete(&self, filled: &[u16]) -> bool {
        match self.all {
            true => (0..self.filters.len()).all(|index| filled.contains(&(index as u16))),
            false => !filled.is_empty(),
        }
    }
}

impl TaskFilter {
    /// Whether only an expression, a regular expression or an earlier event tells if an event fits.
    pub fn is_tested(&self) -> bool {
        !self.patterns.is_empty()
            || self.data.is_some()
            || self.correlate.iter().any(|one| !one.is_indexed)
    }
}

#[derive(Debug, Clone)]
pub enum DataTest {
    /// A condition over the event's data.
    Holds(ExprId),
    /// The same, unless it gives neither true nor false: then the event's data are this text.
    Loose(ExprId, String),
    /// The value, over the input of the task.
    Equals(Template),
}

/// Links the events of a task with a value, or with each other.
#[derive(Debug, Clone)]
pub struct Correlate {
    pub key: Arc<str>,
    /// Over the whole event.
    pub from: ExprId,
    /// Over the input of the task; `None`: the value of the first event.
    pub expect: Option<Template>,
    /// The event's definition asks for the attribute and its value.
    pub is_indexed: bool,
}

/// What of an event the workflow sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventRead {
    #[default]
    Data,
    Envelope,
    /// The payload as a text.
    Raw,
}

/// What is done with each event, one after another.
#[derive(Debug, Clone)]
pub struct EachEvent {
    /// The names of the variables for the event and its index.
    pub item: Arc<str>,
    pub index: Arc<str>,
    pub body: Option<FlowId>,
    pub output: Option<Template>,
    pub output_schema: Option<Schema>,
    pub export: Option<Template>,
    pub context_schema: Option<Schema>,
}

/// What an event's definition says in a task.
#[derive(Debug, Clone, Default)]
pub struct EventAttributes {
    /// Attributes and their values, over the input of the task.
    pub equal: Vec<(Arc<str>, Template)>,
    /// The task tests each event, or takes more than one.
    pub offers: bool,
}
