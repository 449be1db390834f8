//! Frames: the tasks around the current one, whose lists run in the same scope.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;

/// A task that has begun: the data that its expressions may still need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRun {
    /// Its input before `input.from`, if an expression uses it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub raw: Option<Data>,
    /// Its input, if it is used after the task has begun.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub input: Option<Data>,
    pub started_at: Timestamp,
    /// The number of its timeout's timer; 0 if it has none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub timer: u32,
    /// What its extensions have done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<ExtensionRun>,
}

/// The progress of a task's extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionRun {
    /// How many of the task's extensions have been considered before it.
    pub begun: u16,
    /// Those that apply and have tasks that are yet to follow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u16>,
}

/// Tasks of an extension, before or after the task that it extends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extending {
    /// What the task continues with: its input, or its raw output.
    pub data: Data,
    /// After the task: the way that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Exit>,
}

/// The task around the branches of a fork that is a part of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extended {
    pub state: StateId,
    pub task: Arc<TaskRun>,
    /// Its raw output, once it has one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub output: Option<Data>,
}

/// A task around the current one. Each change of the frames replaces the list, so they are shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    pub state: StateId,
    /// The list that runs.
    pub part: FramePart,
    pub task: Arc<TaskRun>,
    /// The number of parameters that were visible outside.
    #[serde(default)]
    pub params: u32,
    /// Of a `for`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<Iteration>,
    /// Of a `try`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<TryRun>,
    /// Of an extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extending: Option<Extending>,
    /// Of a `listen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<Box<ListenRun>>,
    /// The size of its data, except that of a `listen`, and of all data of the frames around it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FramePart {
    Body,
    /// The tasks that handle an error.
    Handler,
    /// Tasks of an extension.
    Extension,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    pub items: Data,
    pub index: u32,
    /// The scope's count of steps when the loop began. Each iteration begins with it, since the list bounds the loop.
    #[serde(default)]
    pub steps: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TryRun {
    /// The retries so far.
    pub retries: u32,
    /// The beginning of the first attempt.
    pub since: Timestamp,
    /// The number of the timer that bounds the attempt; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub timer: u32,
}

impl Scope {
    /// The task that the current one belongs to an extension of, how it runs, and its raw output once it has one.
    pub fn extended(&self) -> Option<(StateId, &TaskRun, Option<&Data>)> {
        let frames = self.frames.iter().rev();
        let inner = frames.filter_map(|frame| {
            let extending = frame.extending.as_ref()?;
            let output = extending.way.map(|_| &extending.data);
            Some((frame.state, &*frame.task, output))
        });
        let outer = self.extended.as_deref();
        let outer = outer.map(|task| (task.state, &*task.task, task.output.as_ref()));
        inner.chain(outer).next()
    }

    /// The events that it waits for: by itself, for an action, and for tasks that listen.
    pub fn waits(&self) -> impl Iterator<Item = &Subscription> {
        let listens = self.frames.iter().filter_map(|frame| frame.listen.as_ref());
        let listens = listens.filter_map(|run| run.wait.as_ref());
        self.wait.iter().chain(&self.answer).chain(listens)
    }
}

/// A subscription to messages. Each call takes one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSource {
    /// Its number within the scope.
    pub number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Timestamp>,
}

/// The progress of a task that listens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ListenRun {
    /// The events that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Subscription>,
    /// The subscription that gives one message after another, in place of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MessageSource>,
    /// It takes no more events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_closed: bool,
    /// It had no room for an event, so it works off its queue before it waits again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_full: bool,
    /// Events that have come and aren't consumed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<Arc<Queued>>,
    /// The events consumed so far, as read, if anything needs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed: Vec<Data>,
    /// The outputs for each of them, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Data>,
    /// The size of `queue` and `consumed` together.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub held_bytes: usize,
    /// The size of `outputs`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub output_bytes: usize,
    /// How many have been consumed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub index: u32,
    /// The condition to stop has been evaluated with this many.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tested: u32,
    /// The result of the tasks for the last event, until its output is made of it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub raw: Option<Data>,
    /// The filters that have their event, if each takes one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filled: Vec<u16>,
    /// The same, of the events that stop it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<u16>,
    /// The values that the events agree on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<(Arc<str>, String)>,
}

fn is_empty(bytes: &usize) -> bool {
    *bytes == 0
}

/// An event that waits for its turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub value: Data,
    /// Empty for a message of a call, as are the source and the id.
    pub name: Arc<str>,
    pub source: String,
    pub id: String,
    /// The wait that it was offered to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<u32>,
}

impl Queued {
    /// Its approximate size in its scope's record.
    pub fn bytes(&self) -> usize {
        /// The names of the members.
        const NAMES: usize = 60;
        NAMES + self.name.len() + self.source.len() + self.id.len() + self.value.bytes()
    }
}
