//! The kinds of states: what each does with the data, and how long it takes.

use swirl_model::workflow::{
    Body, Count, EventFilter, EventId, EventState, Foreach, IterationMode, ListId, Next, Parallel,
    StateId, StateKind, SwitchEvents, Test,
};
use swirl_model::{CloudEvent, Data};

use super::data::{at_path, condition, eval, merge_to, set_path};
use super::flow::{Fail, Instance, Path, after};
use super::world::NEVER;

type Done<'a> = Result<(i64, Option<&'a Next>), Fail>;

/// When an entry is ready, which one it is, and its events.
type Ready = (i64, usize, Vec<(EventId, CloudEvent)>);

impl<'a> Instance<'a> {
    /// When the state's work is done, and the way if it isn't the state's own.
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
                    let Test::Holds(test) = choice.test else {
                        return Err(Fail::named("not known here").at(at));
                    };
                    let holds = condition(wf, test, &path.data, &path.params);
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
            StateKind::Event(state) => plain(self.events(state, path, at)?),
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
        if let Some(expression) = filter.data {
            payload = eval(self.wf, expression, &payload, &path.params).map_err(|f| f.at(at))?;
        }
        if payload.is_null() {
            return Ok(());
        }
        merge_to(self.wf, &mut path.data, filter.to, &payload).map_err(|fail| fail.at(at))
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

    /// Decisions 31 and 88.
    fn events(&mut self, state: &EventState, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let until = state.timeout.map_or(NEVER, |timeout| after(at, &timeout));
        let mut entries = Vec::new();
        let started = self.start_event.take();
        for (index, entry) in state.entries.iter().enumerate() {
            let (mut ready, mut events) = (at, Vec::new());
            for id in &entry.events {
                let found = match &started {
                    Some(event) => Some((at, event.clone())),
                    None => self.arrives(*id, path, at, until)?,
                };
                match found {
                    Some((came, event)) => {
                        ready = ready.max(came);
                        events.push((*id, event));
                    }
                    None => ready = NEVER,
                }
            }
            entries.push((ready, index, events));
        }
        entries.sort_by_key(|(ready, index, _)| (*ready, *index));
        if state.exclusive {
            entries.truncate(1);
        }
        if let [(ready, index, events)] = &entries[..] {
            if *ready >= until || *ready >= NEVER {
                return Ok(until);
            }
            let entry = &state.entries[*index];
            for (id, event) in events {
                self.take_in(*id, &entry.filter, event, path, *ready)?;
            }
            return self.list(entry.actions, path, *ready);
        }
        self.entries(state, entries, path, (at, until))
    }

    /// Each begins when its events are there, with the data as it is then; what it gives is there when it ends.
    fn entries(
        &mut self,
        state: &EventState,
        entries: Vec<Ready>,
        path: &mut Path,
        (at, until): (i64, i64),
    ) -> Result<i64, Fail> {
        // What is under way, by the time of its end; of one instant in the order of the beginnings.
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
                // The first error ends all: what had begun before it is given up with it.
                Err(fail) => return Err(fail),
            }
        }
        all &= waiting.next().is_none();
        Ok(if all { now } else { now.max(until) })
    }

    /// Runs paths that go on at once; the first error ends all.
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

    fn body(&mut self, body: Body, path: &mut Path, at: i64) -> Result<i64, Fail> {
        match body {
            Body::Actions(list) => self.list(list, path, at),
            Body::Flow(_) => Err(Fail::named("flows in branches are not known here")),
        }
    }

    fn parallel(&mut self, state: &Parallel, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let needed = match state.at_least {
            Some(Count::Fixed(count)) => count as usize,
            Some(Count::Expression(id)) => {
                let count = eval(self.wf, id, &path.data, &path.params)?.to_text();
                count
                    .parse()
                    .map_err(|_| Fail::named("InvalidValue").at(at))?
            }
            None => state.branches.len(),
        };
        let mut paths = Vec::new();
        let mut ends = Vec::new();
        for branch in &state.branches {
            let mut split = path.split();
            let timeout = branch.timeout.map(|timeout| after(at, &timeout));
            split.deadline = timeout.map(|until| (until, "BranchTimeout"));
            let end = self.body(branch.body, &mut split, at);
            ends.push(end.and_then(|at| split.in_time(at)));
            paths.push(split);
        }
        let end = self.join(&ends, needed)?;
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by_key(|index| ends[*index].clone().unwrap_or(NEVER));
        order.truncate(needed);
        order.sort_unstable();
        let end = path.in_time(end)?;
        for index in order {
            self.replay(&paths[index], path, end)?;
        }
        Ok(end)
    }

    /// What a path's actions gave is merged where they said.
    pub fn replay(&self, from: &Path, path: &mut Path, at: i64) -> Result<(), Fail> {
        for (to, value) in &from.merges {
            merge_to(self.wf, &mut path.data, *to, value).map_err(|fail| fail.at(at))?;
        }
        Ok(())
    }

    fn foreach(&mut self, state: &Foreach, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let items = eval(self.wf, state.input, &path.data, &path.params)?;
        let Some(items) = items.as_array() else {
            return Err(Fail::named("CollectionNotArray").at(at));
        };
        let size = match &state.mode {
            IterationMode::Sequential => 1,
            IterationMode::Batches(Count::Fixed(size)) => *size as usize,
            _ => items.len().max(1),
        };
        // An iteration that gives nothing leaves null beside its input (decision 87).
        let gives = match state.body {
            Body::Actions(list) => {
                let mut actions = self.wf[list].actions.iter();
                actions.any(|id| !self.wf[*id].results.ignore)
            }
            Body::Flow(_) => true,
        };
        let (mut now, mut results) = (at, Vec::new());
        for batch in items.chunks(size) {
            let mut ends = Vec::new();
            for item in batch {
                let item = Data(item.clone());
                let mut split = path.split();
                split.iteration = true;
                split.data.set(&state.param, item.clone());
                split.params.push((state.param.clone(), item));
                ends.push(self.body(state.body, &mut split, now));
                let result = split.result.take();
                results.extend(result.or_else(|| gives.then(Data::default)));
            }
            now = path.in_time(self.join(&ends, batch.len())?)?;
        }
        if let Some(to) = state.output {
            let old = at_path(self.wf, to, &path.data);
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
                now = self.action(&wf[*id], path, now)?;
            }
            return Ok(now);
        }
        let (mut paths, mut ends) = (Vec::new(), Vec::new());
        for id in &actions.actions {
            let mut split = path.split();
            ends.push(self.action(&wf[*id], &mut split, at));
            paths.push(split);
        }
        let end = path.in_time(self.join(&ends, ends.len())?)?;
        for split in &paths {
            self.replay(split, path, end)?;
        }
        Ok(end)
    }
}
