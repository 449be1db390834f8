//! `listen` (DSL 1.0, "Listen", "Subscription Iterator"): the output is the list of the consumed events.
//!
//! Events come into a queue, and are consumed one after another. With `foreach`, tasks run for each of them; the events
//! that come meanwhile wait in the queue. The messages of an AsyncAPI subscription (`source`) are there all at once; if
//! tasks run for them (`stepwise`), each comes with a call of its own, when the one before has been processed.

use std::sync::Arc;

use swirl_model::scope::{Frame, ListenRun, Queued, Work};
use swirl_model::workflow::{EachEvent, Enough, EventId, Listen, Until};
use swirl_model::{CloudEvent, Data, WorkflowError};

use super::{At, Kind};
use crate::scope::{Check, Next, Step};

impl Kind for Listen {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        if let Some(call) = self.source {
            if self.stepwise.is_none() {
                return Ok(Next::List(call));
            }
            if !at.has_frame() {
                let rule = at.message_rule(call);
                at.take_messages(rule.and_then(|rule| rule.span.as_ref()))?;
            }
            return progress(self, at);
        }
        if !at.has_frame() {
            at.push_frame(None, None)?;
            at.change_frame(|frame| frame.listen = Some(Box::default()));
        }
        at.listen()?;
        progress(self, at)
    }

    /// The call has given its messages. Without any, or if one call gives all, no more come.
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
        let before = at.listen_run().filter(|_| self.stepwise.is_some());
        let before = before.map_or(0, |run| run.held_bytes);
        let held_bytes = before + queue.iter().map(|queued| queued.bytes()).sum::<usize>();
        at.check_held(held_bytes, "the messages of a subscription")?;
        if self.stepwise.is_some() {
            at.change_listen(|run| {
                run.is_closed = queue.is_empty();
                run.held_bytes = held_bytes;
                run.queue.extend(queue);
            });
            at.restore_input();
            return progress(self, at);
        }
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
        if has_enough(listen, at)? {
            return over(listen, at);
        }
        let Some(run) = at.listen_run() else {
            return Ok(Next::Block);
        };
        if !run.queue.is_empty() {
            if let Some(next) = consume(listen, at)? {
                return Ok(next);
            }
            continue;
        }
        if run.is_closed {
            return over(listen, at);
        }
        if let (Some(call), Some(_)) = (listen.source, listen.stepwise) {
            return Ok(Next::List(call));
        }
        if run.wait.is_none() {
            at.listen()?;
        }
        at.work(Work::Events);
        return Ok(Next::Block);
    }
}

/// Whether a subscription has enough messages: `while` after each, `until` before each.
fn has_enough(listen: &Listen, at: &mut At<'_, '_>) -> Result<bool, WorkflowError> {
    let (Some(enough), Some(run)) = (listen.stepwise, at.listen_run()) else {
        return Ok(false);
    };
    let (index, tested) = (run.index, run.tested);
    let test = match enough {
        Enough::Amount(amount) => return Ok(index >= amount),
        Enough::Until(test) if run.queue.is_empty() && !run.is_closed => test,
        Enough::While(test) if tested < index => test,
        Enough::Until(_) | Enough::While(_) => return Ok(false),
    };
    let consumed = Data::array(run.consumed.clone());
    let holds = at.view().condition(test, &consumed)?;
    at.change_listen(|run| run.tested = index);
    Ok(holds == matches!(enough, Enough::Until(_)))
}

/// Consumes the first event of the queue. Returns what follows, if tasks run for it.
fn consume(listen: &Listen, at: &mut At<'_, '_>) -> Result<Option<Next>, WorkflowError> {
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
