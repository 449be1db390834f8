//! `listen` (DSL 1.0, "Listen", "Subscription Iterator"): the output is the list of the consumed events.
//!
//! Events come into a queue, and are consumed one after another. With `foreach`, tasks run for each of them; the events
//! that come meanwhile wait in the queue. The messages of an AsyncAPI subscription (`source`) are there all at once.

use std::sync::Arc;

use swirl_model::scope::{Frame, ListenRun, Queued, Work};
use swirl_model::workflow::{EachEvent, EventId, Listen, Until};
use swirl_model::{CloudEvent, Data};

use super::{At, Kind};
use crate::scope::{Check, Next, Step};

impl Kind for Listen {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        if let Some(call) = self.source {
            return Ok(Next::List(call));
        }
        if !at.has_frame() {
            at.push_frame(None, None)?;
            at.change_frame(|frame| frame.listen = Some(Box::default()));
        }
        at.listen()?;
        progress(self, at)
    }

    /// The call has given its messages, so no more come.
    fn listed(&self, at: &mut At<'_, '_>) -> Step {
        let messages = at.data().clone();
        let items = messages.as_array().into_iter().flatten();
        let queue = items.map(|value| {
            Arc::new(Queued {
                value: Data(value.clone()),
                ..Queued::default()
            })
        });
        let queue: Vec<Arc<Queued>> = queue.collect();
        let held_bytes = queue.iter().map(|queued| queued.bytes()).sum();
        at.check_held(held_bytes, "the messages of a subscription")?;
        let run = ListenRun {
            is_closed: true,
            held_bytes,
            queue,
            ..ListenRun::default()
        };
        at.push_frame(None, None)?;
        at.change_frame(|frame| frame.listen = Some(Box::new(run)));
        at.restore_input();
        progress(self, at)
    }

    fn arrived(&self, at: &mut At<'_, '_>, _: EventId, _: CloudEvent) -> Step {
        progress(self, at)
    }

    /// The tasks for an event are done.
    fn left(&self, at: &mut At<'_, '_>, frame: &Frame) -> Step {
        // An error from here on is the task's own.
        at.return_to(frame);
        let raw = at.data().clone();
        at.change_listen(|run| run.raw = Some(raw));
        progress(self, at)
    }
}

/// Consumes what is in the queue, until tasks have to run for an event, the task is over, or more events must come.
fn progress(listen: &Listen, at: &mut At<'_, '_>) -> Step {
    loop {
        let Some(run) = at.listen_run() else {
            return Ok(Next::Block);
        };
        if let (Some(each), Some(raw)) = (&listen.each, run.raw.clone()) {
            put_output(each, at, &raw)?;
            continue;
        }
        if let Some(Until::Condition(test)) = &listen.until
            && run.tested < run.index
        {
            let consumed = Data::array(run.consumed.clone());
            let holds = at.view().condition(*test, &consumed)?;
            at.change_listen(|run| run.tested = run.index);
            if holds {
                return over(listen, at);
            }
            continue;
        }
        if !run.queue.is_empty() {
            if let Some(next) = consume(listen, at)? {
                return Ok(next);
            }
            continue;
        }
        if run.is_closed {
            return over(listen, at);
        }
        if run.wait.is_none() {
            at.listen()?;
        }
        at.work(Work::Events);
        return Ok(Next::Block);
    }
}

/// Consumes the first event of the queue. Returns what follows, if tasks run for it.
fn consume(
    listen: &Listen,
    at: &mut At<'_, '_>,
) -> Result<Option<Next>, swirl_model::WorkflowError> {
    let Some(value) = at.take_queued(listen.keeps_consumed()) else {
        return Ok(None);
    };
    let Some(each) = &listen.each else {
        return Ok(None);
    };
    let index = at.listen_run().map_or(0, |run| run.index.saturating_sub(1));
    at.see_params(vec![
        (each.item.clone(), value.clone()),
        (each.index.clone(), Data::int(i64::from(index))),
    ]);
    let raw = match each.body {
        Some(body) if !at.workflow()[body].states.is_empty() => {
            return Ok(Some(Next::Tasks(body)));
        }
        Some(_) => at.data().clone(),
        None => value,
    };
    at.change_listen(|run| run.raw = Some(raw));
    Ok(None)
}

/// Makes the output for an event of what its tasks gave.
fn put_output(each: &EachEvent, at: &mut At<'_, '_>, raw: &Data) -> Check {
    let mut output = raw.clone();
    if let Some(template) = &each.output {
        let mut view = at.view();
        view.task.raw_output = Some(raw);
        output = view.template(template, raw)?;
    }
    at.check_each(&output, false)?;
    let bytes = output.bytes();
    let output_bytes = at
        .listen_run()
        .map_or(bytes, |run| run.output_bytes + bytes);
    at.check_held(output_bytes, "the list of outputs")?;
    if let Some(template) = &each.export {
        let mut view = at.view();
        view.task.raw_output = Some(raw);
        view.task.output = Some(&output);
        let context = view.template(template, &output)?;
        at.check_each(&context, true)?;
        at.check_data(&context, "the context")?;
        at.put_context(context);
    }
    at.change_listen(|run| {
        run.raw = None;
        run.outputs.push(output);
        run.output_bytes = output_bytes;
    });
    at.see_params(Vec::new());
    at.restore_input();
    Ok(())
}

fn over(listen: &Listen, at: &mut At<'_, '_>) -> Step {
    let list = |run: &ListenRun| match listen.each {
        Some(_) => run.outputs.clone(),
        None => run.consumed.clone(),
    };
    let output = at.listen_run().map(list).unwrap_or_default();
    at.put_data(Data::array(output))?;
    at.pop_frame();
    at.done()
}
