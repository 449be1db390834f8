//! Begins the waits of tasks that listen, and takes in their events.

use std::sync::Arc;

use swirl_model::event::{Command, Slot, Subscription};
use swirl_model::scope::{ListenRun, Queued};
use swirl_model::workflow::{Listen, TaskFilter};
use swirl_model::{CloudEvent, WorkflowError};

use crate::scope::listening::{Offer, listen_of, read_event};
use crate::scope::{Check, Ctx, Next, Rejection};

impl Ctx<'_> {
    /// Waits for the events that the task at this depth still takes, unless it does already.
    pub(crate) fn listen(&mut self, depth: usize) -> Check {
        let Some(frame) = self.scope.frames.get(depth).cloned() else {
            return Ok(());
        };
        let (Some(listen), Some(run)) = (listen_of(self.def, &frame), &frame.listen) else {
            return Ok(());
        };
        let is_busy = run.is_full && !run.queue.is_empty();
        if run.is_closed || run.wait.is_some() || is_busy {
            return Ok(());
        }
        let input = self.task_input(&frame);
        let view = self.view_of(&frame);
        let mut slots: Vec<Slot> = Vec::new();
        let mut offers = false;
        for (index, filter) in open_filters(listen, run) {
            let found = view.event_match(filter.event, &input)?;
            offers |= found.as_ref().is_some_and(|found| found.offers);
            match slots.first_mut() {
                Some(slot) if offers || !listen.to.all => slot.filters.extend(found),
                _ => slots.push(Slot {
                    slot: index,
                    filters: found.into_iter().collect(),
                }),
            }
        }
        let subscription = Subscription {
            wait: self.seq(),
            slots,
        };
        self.change_listen(depth, |run| {
            run.wait = Some(subscription.clone());
            run.is_full = false;
        });
        self.command(Command::Subscribe(subscription));
        Ok(())
    }

    /// All tasks around the current one that listen wait again.
    pub(crate) fn listen_around(&mut self) -> Check {
        (0..self.scope.frames.len()).try_for_each(|depth| self.listen(depth))
    }

    /// Takes in an event for the task at this depth. Returns an error if there is no room for it.
    pub(crate) fn hear(
        &mut self,
        depth: usize,
        event: &CloudEvent,
        Offer { offered, early }: Offer,
    ) -> Result<Check, Rejection> {
        let frame = self.scope.frames[depth].clone();
        let (Some(listen), Some(run)) = (listen_of(self.def, &frame), &frame.listen) else {
            return Err(Rejection::WaitOver);
        };
        let heard = self.heard(&frame, listen, event, early);
        let heard = heard.ok_or(Rejection::NotTaken)?;
        // A fault ends the wait and leaves the queue, so the next wait is offered what is still in it.
        let is_same = |queued: &Arc<Queued>| queued.source == event.source && queued.id == event.id;
        if run.queue.iter().any(is_same) {
            return Err(Rejection::NotTaken);
        }
        let consume = match listen.stops().filter(|_| heard.stops) {
            Some(stops) => stops,
            None => &listen.to,
        };
        let def = &self.def.workflow[consume.filters[usize::from(heard.filter)].event];
        let queued = Queued {
            value: read_event(listen.read, event),
            name: def.name.clone(),
            source: event.source.clone(),
            id: event.id.clone(),
            offer: run.wait.as_ref().filter(|_| offered).map(|wait| wait.wait),
        };
        let held_bytes = run.held_bytes + queued.bytes();
        if heard.stops {
            self.take_queued(&queued);
        } else if let Err(full) = self.check_held(held_bytes, "the events that a task has taken in")
        {
            return Ok(Err(full));
        }
        self.change_listen(depth, |run| {
            run.keys.extend(heard.keys);
            match heard.stops {
                true => run.stopped.push(heard.filter),
                false => {
                    run.queue.push(Arc::new(queued));
                    run.held_bytes = held_bytes;
                    if listen.until.is_none() {
                        run.filled.push(heard.filter);
                    }
                }
            }
        });
        let run = self.scope.frames[depth].listen.as_deref();
        let is_over = run.is_some_and(|run| match heard.stops {
            true => consume.is_complete(&run.stopped),
            false => listen.until.is_none() && consume.is_complete(&run.filled),
        });
        if is_over {
            self.close_listen(depth);
        }
        Ok(Ok(()))
    }

    /// The task at this depth has no room for an event. That is its own error, whatever runs inside it.
    pub(crate) fn raise_full(&mut self, depth: usize, mut error: WorkflowError) -> Next {
        self.change_listen(depth, |run| run.is_full = true);
        let task = &self.def.workflow[self.scope.frames[depth].state];
        error.state = Some(task.name.to_string());
        let error = self.described(error, &task.pointer);
        self.raise_within(error, depth)
    }
}

/// The filters that still take an event, with the number of the slot.
fn open_filters<'l>(
    listen: &'l Listen,
    run: &'l ListenRun,
) -> impl Iterator<Item = (u16, &'l TaskFilter)> {
    let own = (0u16..).zip(&listen.to.filters);
    let own = own.filter(|(index, _)| !listen.to.all || !run.filled.contains(index));
    let stops = listen.stops().into_iter();
    let stops = stops.flat_map(|stops| {
        let filters = (0u16..).zip(&stops.filters);
        filters.filter(|(index, _)| !stops.all || !run.stopped.contains(index))
    });
    own.chain(stops)
}
