//! The kinds of states: their effects on the data, and their durations.

use swirl_model::workflow::{
    Body, Count, EventFilter, EventId, EventState, Foreach, IterationMode, ListId, Next, Parallel,
    StateId, StateKind, SwitchEvents,
};
use swirl_model::{CloudEvent, Data};

use super::data::{at_path, eval, merge_to, set_path};
use super::errors::{Fail, OF_TASKS};
use super::flow::{Instance, Path, after};
use super::tests::holds;
use super::world::NEVER;

type Done<'a> = Result<(i64, Option<&'a Next>), Fail>;

/// The time at which an entry is ready, its index, and its events.
type Ready = (i64, usize, Vec<(EventId, CloudEvent)>);

impl<'a> Instance<'a> {
    /// The time at which the state's work is done, and the transition if it isn't the state's own.
    pub fn state(&mut self, id: StateId, path: &mut Path, at: i64) -> Done<'a> {
        let wf = self.wf;
        let plain = |at: i64| Ok((at, None));
        match &wf[id].kind {
            StateKind::Inject(data) => {
                path.data = super::data::merged(&path.data, data);
                plain(at)
            }
            StateKind::Operation(list) => plain(self.list(*list, path, at)?),
            StateKind::Sleep(duration) => plain(after(at, duration)),
            StateKind::Switch(switch) => {
                for choice in &switch.conditions {
                    let holds = holds(wf, &choice.test, &path.data, &path.params);
                    if holds.map_err(|fail| fail.at(at))? {
                        return Ok((at, Some(&choice.next)));
                    }
                }
                match &switch.default {
                    Some(next) => Ok((at, Some(next))),
                    None => Err(Fail::named("NoMatchingCondition").at(at)),
                }
            }
            StateKind::SwitchEvents(switch) => self.switch_events(switch, path, at),
            StateKind::Event(state) => self.events(state, path, at),
            StateKind::Callback(callback) => {
                let acted = self.list(callback.actions, path, at)?;
                let until = callback.timeout.map_or(NEVER, |t| after(acted, &t));
                match self.arrives(callback.event, path, acted, until)? {
                    Some((came, event)) => {
                        self.take_in(callback.event, &callback.filter, &event, path, came)?;
                        plain(came)
                    }
                    None => plain(until),
                }
            }
            StateKind::Foreach(foreach) => plain(self.foreach(foreach, path, at)?),
            StateKind::Parallel(parallel) => plain(self.parallel(parallel, path, at)?),
            StateKind::Do(_)
            | StateKind::Emit(_)
            | StateKind::For(_)
            | StateKind::Function(_)
            | StateKind::Listen(_)
            | StateKind::Raise(_)
            | StateKind::Set(_)
            | StateKind::Try(_) => Err(Fail::named(OF_TASKS).at(at)),
        }
    }

    fn arrives(
        &mut self,
        id: EventId,
        path: &Path,
        at: i64,
        until: i64,
    ) -> Result<Option<(i64, CloudEvent)>, Fail> {
        let found = self.world.arrival(self.wf, id, &path.data, at, &self.had);
        let found = found.map_err(|fail| fail.at(at))?;
        let found = found.filter(|(came, _)| *came < until);
        self.had
            .extend(found.iter().map(|(_, event)| event.id.clone()));
        Ok(found)
    }

    fn take_in(
        &self,
        id: EventId,
        filter: &EventFilter,
        event: &CloudEvent,
        path: &mut Path,
        at: i64,
    ) -> Result<(), Fail> {
        if filter.ignore {
            return Ok(());
        }
        let mut payload = match self.wf[id].data_only {
            true => event.data.clone().unwrap_or_default(),
            false => event.to_data(),
        };
        let found = (filter.data, filter.under.as_ref(), filter.to);
        payload = self
            .selected(found, payload, &path.params)
            .map_err(|fail| fail.at(at))?;
        if filter.or_whole && payload.is_null() {
            payload = self
                .selected(found, event.to_data(), &path.params)
                .map_err(|fail| fail.at(at))?;
        }
        if !payload.is_null() {
            merge_to(self.wf, &mut path.data, filter.to, &payload).map_err(|fail| fail.at(at))?;
        }
        self.cut(filter.output, path).map_err(|fail| fail.at(at))
    }

    fn switch_events(&mut self, switch: &'a SwitchEvents, path: &mut Path, at: i64) -> Done<'a> {
        let until = switch.timeout.map_or(NEVER, |timeout| after(at, &timeout));
        let mut first: Option<(i64, usize)> = None;
        for (index, choice) in switch.conditions.iter().enumerate() {
            let found = self
                .world
                .arrival(self.wf, choice.event, &path.data, at, &self.had)?;
            let sooner = |came: i64| first.is_none_or(|(before, _)| came < before);
            if let Some((came, _)) = found
                && came < until
                && sooner(came)
            {
                first = Some((came, index));
            }
        }
        let Some((came, index)) = first else {
            let none = || Fail::named("NoMatchingCondition").at(until);
            return Ok((until, Some(switch.default.as_ref().ok_or_else(none)?)));
        };
        let choice = &switch.conditions[index];
        if let Some((_, event)) = self.arrives(choice.event, path, at, until)? {
            self.take_in(choice.event, &choice.filter, &event, path, came)?;
        }
        Ok((came, Some(&choice.next)))
    }

    /// docs/language.md#decision-31, #decision-32, #decision-39 and #decision-88.
    fn events(&mut self, state: &'a EventState, path: &mut Path, at: i64) -> Done<'a> {
        let until = state.timeout.map_or(NEVER, |timeout| after(at, &timeout));
        let started = std::mem::take(&mut self.start_events);
        let mut arrived: Vec<(EventId, i64, CloudEvent)> = Vec::new();
        for id in state.entries.iter().flat_map(|entry| &entry.events) {
            if arrived.iter().any(|(known, ..)| known == id) {
                continue;
            }
            let found = match started.is_empty() {
                true => self.arrives(*id, path, at, until)?,
                false => {
                    let def = &self.wf[*id];
                    let mut events = started.iter();
                    let found = events.find(|event| super::world::is_kind(def, event));
                    found.map(|event| (at, event.clone()))
                }
            };
            arrived.extend(found.map(|(came, event)| (*id, came, event)));
        }
        let mut entries = Vec::new();
        for (index, entry) in state.entries.iter().enumerate() {
            let limit = entry.timeout.map_or(NEVER, |timeout| after(at, &timeout));
            let came_by = |place: u16, then: i64| {
                let id = entry.events.get(usize::from(place));
                let mut all = arrived.iter();
                id.is_some_and(|id| all.any(|(known, came, _)| known == id && *came <= then))
            };
            let mut times: Vec<i64> = arrived.iter().map(|(_, came, _)| *came).collect();
            times.push(at);
            times.sort_unstable();
            let mut times = times.into_iter();
            let ready = times.find(|then| entry.wait.holds(&|place| came_by(place, *then)));
            let ready = ready
                .filter(|then| *then < limit.min(until))
                .unwrap_or(NEVER);
            let events = entry.events.iter().filter_map(|id| {
                let mut all = arrived.iter();
                let found = all.find(|(known, came, _)| known == id && *came <= ready);
                found.map(|(id, _, event)| (*id, event.clone()))
            });
            entries.push((ready, index, events.collect()));
        }
        entries.sort_by_key(|(ready, index, _): &Ready| (*ready, *index));
        if !state.exclusive && state.entries.len() > 1 {
            return Ok((self.entries(state, entries, path, (at, until))?, None));
        }
        let Some((ready, index, events)) = entries.into_iter().next() else {
            return Ok((at, None));
        };
        if ready >= NEVER {
            return Ok(lapsed(state, at, until));
        }
        let entry = &state.entries[index];
        for (id, event) in &events {
            self.take_in(*id, &entry.filter, event, path, ready)?;
        }
        let done = self.list(entry.actions, path, ready)?;
        Ok((done, entry.next.as_ref()))
    }

    /// Each entry begins when its events are available, with the current data; its result is available at its end.
    fn entries(
        &mut self,
        state: &EventState,
        entries: Vec<Ready>,
        path: &mut Path,
        (at, until): (i64, i64),
    ) -> Result<i64, Fail> {
        // The running entries by the time of their end; at equal times, in the order of their beginning.
        let mut running: Vec<(i64, Path)> = Vec::new();
        let (mut now, mut all) = (at, true);
        let mut waiting = entries.into_iter().peekable();
        loop {
            let begins = waiting.peek().map_or(NEVER, |(ready, ..)| (*ready).max(at));
            let ends = running.iter().map(|(end, _)| *end).min().unwrap_or(NEVER);
            if begins.min(ends) >= NEVER {
                break;
            }
            if ends < begins {
                let place = running
                    .iter()
                    .position(|(end, _)| *end == ends)
                    .unwrap_or(0);
                let (_, split) = running.remove(place);
                now = path.in_time(ends)?;
                self.replay(&split, path, ends)?;
                continue;
            }
            let Some((_, index, events)) = waiting.next() else {
                break;
            };
            if begins >= until {
                all = false;
                continue;
            }
            now = path.in_time(begins)?;
            let entry = &state.entries[index];
            for (id, event) in &events {
                self.take_in(*id, &entry.filter, event, path, begins)?;
            }
            let mut split = path.split();
            match self.list(entry.actions, &mut split, begins) {
                Ok(end) => running.push((end, split)),
                // The first error ends everything: entries that began before it are abandoned.
                Err(fail) => return Err(fail),
            }
        }
        all &= waiting.next().is_none();
        Ok(if all { now } else { now.max(until) })
    }

    /// Joins concurrent paths. The first error ends everything.
    pub fn join(&mut self, ends: &[Result<i64, Fail>], needed: usize) -> Result<i64, Fail> {
        let mut ends: Vec<&Result<i64, Fail>> = ends.iter().collect();
        let time = |end: &&Result<i64, Fail>| end.as_ref().map_or_else(|fail| fail.at, |at| *at);
        ends.sort_by_key(time);
        let mut last = 0;
        for end in ends.into_iter().take(needed) {
            last = end.clone()?;
        }
        Ok(last)
    }

    /// Runs the body of a branch or an iteration. A flow returns the data with which it ends.
    pub fn body(&mut self, body: Body, path: &mut Path, at: i64) -> Result<i64, Fail> {
        match body {
            Body::Actions(list) => self.list(list, path, at),
            Body::Flow(flow) => {
                let end = self.flow(flow, path, at)?;
                // If nothing follows an unmerged result, it is the result of an iteration.
                let plain = path.plain.take().filter(|(_, data)| *data == path.data);
                path.result = Some(plain.map_or_else(|| path.data.clone(), |(plain, _)| plain));
                Ok(end)
            }
        }
    }

    fn parallel(&mut self, state: &Parallel, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let awaited = state.branches.iter().filter(|branch| branch.awaited);
        let needed = match state.at_least {
            Some(Count::Fixed(count)) => count as usize,
            Some(Count::Expression(id)) => {
                let count = eval(self.wf, id, &path.data, &path.params)?.to_text();
                count
                    .parse()
                    .map_err(|_| Fail::named("InvalidValue").at(at))?
            }
            None => awaited.clone().count(),
        };
        for branch in state.branches.iter().filter(|branch| !branch.awaited) {
            self.apart.push((branch.body, path.split(), at));
        }
        let mut paths = Vec::new();
        let mut ends = Vec::new();
        for branch in awaited {
            let mut split = path.split();
            let timeout = branch.timeout.map(|timeout| after(at, &timeout));
            split.within(timeout.map(|until| (until, "BranchTimeout")));
            let end = self.body(branch.body, &mut split, at);
            ends.push(end.and_then(|at| split.in_time(at)));
            paths.push((branch, split));
        }
        let end = self.join(&ends, needed)?.max(at);
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by_key(|index| ends[*index].clone().unwrap_or(NEVER));
        order.truncate(needed);
        order.sort_unstable();
        let end = path.in_time(end)?;
        if state.collect {
            let outputs = order.iter().map(|index| {
                let (branch, split) = &paths[*index];
                match branch.body {
                    Body::Flow(_) => split.result.clone().unwrap_or_default(),
                    Body::Actions(_) => split.data.clone(),
                }
            });
            let outputs = Data::array(outputs.collect());
            match state.collect_to {
                Some(to) => set_path(self.wf, to, &mut path.data, outputs),
                None => path.data = outputs,
            }
            return Ok(end);
        }
        for index in order {
            let (branch, split) = &paths[index];
            match (branch.body, &split.result) {
                (Body::Flow(_), Some(output)) if !output.is_null() => {
                    merge_to(self.wf, &mut path.data, None, output).map_err(|fail| fail.at(end))?;
                }
                (Body::Flow(_), _) => {}
                (Body::Actions(_), _) => self.replay(split, path, end)?,
            }
        }
        Ok(end)
    }

    /// Merges the results of a path's actions at their targets. They then become results of the enclosing path.
    pub fn replay(&self, from: &Path, path: &mut Path, at: i64) -> Result<(), Fail> {
        for put in &from.merges {
            self.put(put, path).map_err(|fail| fail.at(at))?;
            path.merges.push(put.clone());
        }
        Ok(())
    }

    fn foreach(&mut self, state: &Foreach, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let items = eval(self.wf, state.input, &path.data, &path.params)?;
        let Some(items) = items.as_array() else {
            return Err(Fail::named("CollectionNotArray").at(at));
        };
        // An iteration without a result leaves null at its input's position (docs/language.md#decision-87).
        let gives = match state.body {
            Body::Actions(list) => {
                let mut actions = self.wf[list].actions.iter();
                actions.any(|id| !self.wf[*id].results.ignore)
            }
            Body::Flow(_) => true,
        };
        let mut results = Vec::new();
        let mut ends: Vec<Result<i64, Fail>> = Vec::new();
        let mut begun = at;
        for item in items {
            begun = begins(state, items.len(), &ends, (at, begun))?;
            let item = Data(item.clone());
            let mut split = path.split();
            split.iteration = matches!(state.body, Body::Actions(_));
            split.in_iteration = true;
            if split.data.is_object() {
                split.data.set(&state.param, item.clone());
            }
            split.params.push((state.param.clone(), item));
            ends.push(self.body(state.body, &mut split, begun));
            let result = split.result.take();
            results.extend(result.or_else(|| gives.then(Data::default)));
        }
        let end = self.join(&ends, ends.len())?.max(at);
        let now = path.in_time(end)?;
        if let Some(to) = state.output {
            let old = at_path(self.wf, to, &path.data);
            if !old.is_null() && old.as_array().is_none() {
                return Err(Fail::named("MergeTypeMismatch").at(now));
            }
            let old = old.as_array().map(<[_]>::to_vec).unwrap_or_default();
            let all = old.into_iter().map(Data).chain(results);
            set_path(self.wf, to, &mut path.data, Data::array(all.collect()));
        }
        Ok(now)
    }

    pub fn list(&mut self, list: ListId, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let wf = self.wf;
        let actions = &wf[list];
        if !actions.parallel || actions.actions.len() < 2 {
            let mut now = at;
            for id in &actions.actions {
                now = self.action(*id, path, now)?;
            }
            return Ok(now);
        }
        let (mut paths, mut ends) = (Vec::new(), Vec::new());
        for id in &actions.actions {
            let mut split = path.split();
            split.in_iteration = path.in_iteration;
            ends.push(self.action(*id, &mut split, at));
            paths.push(split);
        }
        let end = path.in_time(self.join(&ends, ends.len())?)?;
        for split in &paths {
            self.replay(split, path, end)?;
            if let Some((plain, _)) = &split.plain {
                path.plain = Some((plain.clone(), path.data.clone()));
            }
        }
        Ok(end)
    }
}

/// The time at which the next iteration begins, after those that have begun, the last one at `last`.
fn begins(
    state: &Foreach,
    total: usize,
    ends: &[Result<i64, Fail>],
    (at, last): (i64, i64),
) -> Result<i64, Fail> {
    let index = ends.len();
    let later = |from: i64| {
        state
            .pause
            .as_ref()
            .map_or(from, |pause| after(from, pause))
    };
    let fixed = |count: &Count| match count {
        Count::Fixed(size) => Ok(*size as usize),
        Count::Expression(_) => Err(Fail::named("not known here").at(at)),
    };
    // All of these must be done before it begins.
    let all_done = |ends: &[Result<i64, Fail>]| {
        let mut latest = at;
        for end in ends {
            latest = latest.max(end.clone()?);
        }
        Ok::<_, Fail>(latest)
    };
    let window = match &state.mode {
        IterationMode::Sequential if index == 0 => return Ok(at),
        IterationMode::Sequential => return Ok(later(all_done(ends)?)),
        IterationMode::Batches(size) => {
            let first = index - index % fixed(size)?.max(1);
            let done = all_done(&ends[..first])?;
            return Ok(if first == 0 { done } else { later(done) });
        }
        IterationMode::Parallel => total,
        IterationMode::Window(size) => match fixed(size)? {
            0 => total,
            size => size,
        },
    };
    if index == 0 {
        return Ok(at);
    }
    let mut known: Vec<i64> = Vec::new();
    for end in ends {
        known.push(end.clone()?);
    }
    known.sort_unstable();
    // Enough iterations must be done for another one to have room. Its pause begins then.
    Ok(match (index + 1).saturating_sub(window) {
        0 => later(last),
        done => later(last.max(known[done - 1])),
    })
}

/// No entry was ready in time. The last awaited one determines the transition, if any.
fn lapsed(state: &EventState, at: i64, until: i64) -> (i64, Option<&Next>) {
    let limits = state.entries.iter().map(|entry| {
        let limit = entry.timeout.map_or(NEVER, |timeout| after(at, &timeout));
        (limit, entry)
    });
    match limits.max_by_key(|(limit, _)| *limit) {
        Some((limit, entry)) if limit < until => (limit, entry.next.as_ref()),
        _ => (until, None),
    }
}
