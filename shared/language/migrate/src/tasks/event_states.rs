//! States that wait for events.

use swirl_model::Data;
use swirl_model::workflow::{
    ActionKind, Callback, EventFilter, EventId, EventState, Period, Produce, State, StateId,
    SwitchEvents,
};

use super::actions::Layout;
use super::jq_text::piped;
use super::merge::{Taking, with_definitions};
use super::writer::{Tasks, Writer, do_list, list, marked, object};

impl Writer<'_> {
    /// Waits for events: the output is the state data in `.data`, and the events in `.events`, none after the timeout.
    pub fn arrival(
        &mut self,
        events: &[EventId],
        all: bool,
        timeout: Option<Period>,
        answers: Option<&Produce>,
    ) -> Tasks {
        let mut task = self.listen(events, all, ".", answers);
        task.set(
            "output",
            object([("as", marked("{data: $input, events: .}"))]),
        );
        self.timeout(&mut task, timeout, ".");
        if timeout.is_some() {
            let kind = format!("{}timeout", swirl_model::error::OWN_TYPES);
            let with = object([("type", Data::string(kind))]);
            let missed = object([("set", marked("{data: ., events: []}"))]);
            let catch = object([
                ("errors", object([("with", with)])),
                ("do", list(vec![("missed".to_owned(), missed)])),
            ]);
            let body = list(vec![("listen".to_owned(), task)]);
            task = object([("try", body), ("catch", catch)]);
        }
        vec![("events".to_owned(), task)]
    }

    /// A task that merges the payloads of the events in `.events` into `.data`. The events are in the order of the
    /// definition.
    pub fn merge_task(&mut self, parts: &[(EventId, &EventFilter)]) -> Data {
        let mut text = ".data".to_owned();
        let mut ignored = true;
        for (id, filter) in parts {
            let merged = self.with_payload(*id, filter);
            if merged == "." {
                continue;
            }
            ignored = false;
            let found = match parts.len() {
                1 => "$events[0]".to_owned(),
                _ => format!("first($events[] | select({}))", self.is_event(*id)),
            };
            text = format!("{text} | {found} as $event | {merged}");
        }
        let text = match ignored {
            true => text,
            false => format!(".events as $events | {text}"),
        };
        let mut task = object([("set", marked(&with_definitions(text)))]);
        if self.tracks {
            let context = marked("$context + {data: .}");
            task.set("export", object([("as", context)]));
        }
        task
    }

    pub fn event_state(&mut self, id: StateId, event: &EventState) -> Data {
        let at_start = self.data_at_start(id);
        let starts = at_start.is_some();
        let events: Vec<EventId> = event
            .entries
            .iter()
            .flat_map(|entry| entry.events.iter().copied())
            .collect();
        self.cannot_if(
            event.timeout_restarts && event.timeout.is_some() && events.len() > 1,
            "a timeout begins again with each event",
        );
        for entry in &event.entries {
            self.cannot_if(
                entry.next.is_some() && event.entries.len() > 1,
                "an entry of an event state has its own transition",
            );
            self.cannot_if(
                entry.timeout.is_some(),
                "an entry of an event state has its own timeout",
            );
        }
        let Some(all) = self.waits_for_all(event) else {
            return object([("set", marked("."))]);
        };
        if events.len() > 1 {
            self.check_distinct(&events);
        }
        let mut tasks = match &at_start {
            Some(data) => {
                self.cannot_if(
                    event.timeout.is_some() && all && events.len() > 1,
                    "the events that start an instance must come within a time",
                );
                self.started(&events, data)
            }
            None => self.arrival(&events, all, event.timeout, None),
        };
        if self.tracks && !starts {
            tasks.insert(0, ("begin".to_owned(), begin()));
        }
        let misses = event.timeout.is_some() && !starts;
        if all || event.entries.len() == 1 {
            let with_actions = event.entries.iter();
            let busy = with_actions
                .filter(|entry| !self.workflow[entry.actions].actions.is_empty())
                .count();
            self.cannot_if(
                event.entries.len() > 1 && (busy > 0 || misses),
                "entries of an event state run their actions side by side, each when its own events are there",
            );
            let one_of_many = !all && events.len() > 1;
            let parts: Vec<(EventId, &EventFilter)> = event
                .entries
                .iter()
                .flat_map(|entry| entry.events.iter().map(|id| (*id, &entry.filter)))
                .collect();
            let mut arrived = Vec::new();
            match one_of_many {
                true => arrived.append(&mut self.dispatched(&parts)),
                false => arrived.push(("merge".to_owned(), self.merge_task(&parts))),
            }
            for entry in &event.entries {
                arrived.append(&mut self.list_tasks(entry.actions, Layout::Plain));
            }
            tasks.append(&mut missing_or(misses, do_list(arrived)));
            return do_list(tasks);
        }
        // The first event decides which entry runs.
        let mut cases = Vec::new();
        let mut entries = Vec::new();
        for (place, entry) in event.entries.iter().enumerate() {
            let name = format!("entry-{}", place + 1);
            let tests: Vec<String> = entry.events.iter().map(|id| self.is_event(*id)).collect();
            let when = format!(".events[0] | {}", tests.join(" or "));
            let case = object([
                ("when", marked(&when)),
                ("then", Data::string(name.as_str())),
            ]);
            cases.push((name.clone(), case));
            let parts: Vec<(EventId, &EventFilter)> =
                entry.events.iter().map(|id| (*id, &entry.filter)).collect();
            let mut arrived = match parts.len() {
                1 => vec![("merge".to_owned(), self.merge_task(&parts))],
                _ => self.dispatched(&parts),
            };
            arrived.append(&mut self.list_tasks(entry.actions, Layout::Plain));
            let mut task = do_list(arrived);
            task.set("then", Data::string("exit"));
            entries.push((name, task));
        }
        let missed = object([("set", marked(".data"))]);
        if misses {
            let none = object([
                ("when", marked("(.events | length) == 0")),
                ("then", Data::string("missed")),
            ]);
            cases.insert(0, ("missed".to_owned(), none));
            entries.push(("missed".to_owned(), missed));
        }
        tasks.push(("choose".to_owned(), object([("switch", list(cases))])));
        tasks.append(&mut entries);
        do_list(tasks)
    }

    /// Merges the payload of the one event that came, whichever it is.
    pub fn dispatched(&mut self, parts: &[(EventId, &EventFilter)]) -> Tasks {
        let mut text = ".events[0] as $event | .data | ".to_owned();
        for (place, (id, filter)) in parts.iter().enumerate() {
            let merged = self.with_payload(*id, filter);
            let word = if place == 0 { "if" } else { " elif" };
            let test = self.is_event(*id);
            text.push_str(&format!("{word} ($event | {test}) then ({merged})"));
        }
        text.push_str(" else . end");
        let mut task = object([("set", marked(&with_definitions(text)))]);
        if self.tracks {
            let context = marked("$context + {data: .}");
            task.set("export", object([("as", context)]));
        }
        vec![("merge".to_owned(), task)]
    }

    pub fn callback(&mut self, callback: &Callback) -> Data {
        let mut tasks = self.list_tasks(callback.actions, Layout::Plain);
        let produced = self.workflow[callback.actions].actions.first();
        let produced = produced.and_then(|id| match &self.workflow[*id].kind {
            ActionKind::Event(event) => event.produce.clone(),
            _ => None,
        });
        if self.tracks {
            tasks.insert(0, ("begin".to_owned(), begin()));
        }
        tasks.append(&mut self.arrival(
            &[callback.event],
            false,
            callback.timeout,
            produced.as_ref(),
        ));
        let merge = self.merge_task(&[(callback.event, &callback.filter)]);
        let arrived = do_list(vec![("merge".to_owned(), merge)]);
        tasks.append(&mut missing_or(callback.timeout.is_some(), arrived));
        do_list(tasks)
    }

    /// A switch over events: the events arrive inside, the way is taken outside.
    pub fn switch_events(
        &mut self,
        state: &State,
        switch: &SwitchEvents,
        name: &str,
        behind: &mut Tasks,
    ) -> Data {
        let events: Vec<EventId> = switch.conditions.iter().map(|one| one.event).collect();
        self.check_distinct(&events);
        self.cannot_if(
            state.output.is_some() || state.output_schema.is_some(),
            "a switch over events has an output filter",
        );
        let tasks = self.arrival(&events, false, switch.timeout, None);
        let mut task = self.filtered(state, do_list(tasks));
        self.timeout(&mut task, state.timeout, ".");
        let mut task = self.with_state_handlers(state, name, task, behind);
        let ways = self.new_name(&format!("{name}-ways"));
        task.set("then", Data::string(ways.as_str()));
        let (mut cases, mut merges) = (Vec::new(), Vec::new());
        for (place, condition) in switch.conditions.iter().enumerate() {
            let at = self.new_name(&format!("{name}-event"));
            let test = self.is_event(condition.event);
            let when = marked(&format!(".events[0] | {test}"));
            let case = object([("when", when), ("then", Data::string(at.as_str()))]);
            let named = condition.name.clone().filter(|name| !name.is_empty());
            cases.push((named.unwrap_or_else(|| format!("case-{}", place + 1)), case));
            let mut merge = self.merge_task(&[(condition.event, &condition.filter)]);
            let mut further = Vec::new();
            let then = self.way(&condition.next, ".", &mut further);
            merge.set("then", Data::string(then));
            merges.push((at, merge));
            merges.append(&mut further);
        }
        if switch.timeout.is_some() {
            let at = self.new_name(&format!("{name}-none"));
            let case = object([
                ("when", marked("(.events | length) == 0")),
                ("then", Data::string(at.as_str())),
            ]);
            cases.insert(0, ("none".to_owned(), case));
            let mut further = Vec::new();
            let mut none = object([("set", marked(".data"))]);
            match &switch.default {
                Some(next) => {
                    let then = self.way(next, ".", &mut further);
                    none.set("then", Data::string(then));
                }
                None => self.cannot("a switch over events has a timeout and no default"),
            }
            merges.push((at, none));
            merges.append(&mut further);
        }
        behind.insert(0, (ways, object([("switch", list(cases))])));
        behind.append(&mut merges);
        task
    }

    /// The state data, which is `.`, with the payload of `$event` in it.
    pub fn with_payload(&mut self, id: EventId, filter: &EventFilter) -> String {
        if filter.ignore {
            return ".".to_owned();
        }
        let taking = Taking::from(filter);
        let taken = self.taken(taking);
        let payload = self.payload(id);
        let mut part = piped(payload, &taken);
        if filter.or_whole {
            let whole = piped("$event", &taken);
            part = format!("({part}) as $part | if $part == null then ({whole}) else $part end");
        }
        let merged = self.merged(taking, "$result");
        format!("({part}) as $result | {merged}")
    }

    /// Events that can't be told apart once they are there.
    pub fn check_distinct(&mut self, events: &[EventId]) {
        let tests: Vec<String> = events.iter().map(|id| self.is_event(*id)).collect();
        let unlike = tests
            .iter()
            .enumerate()
            .all(|(at, test)| !tests[..at].contains(test));
        self.cannot_if(
            !unlike,
            "two events that are waited for have the same type and source",
        );
    }
}

/// The tasks for events that arrived, unless a timeout passed.
fn missing_or(misses: bool, arrived: Data) -> Tasks {
    if !misses {
        let inner = arrived.get("do").unwrap_or_default();
        let items = inner.as_array().into_iter().flat_map(|items| items.iter());
        let tasks = items.flat_map(|item| {
            let item = Data(item.clone());
            let members = item.as_object().into_iter().flat_map(|all| all.iter());
            members
                .map(|(name, task)| (Data(name.clone()).to_text(), Data(task.clone())))
                .collect::<Vec<_>>()
        });
        return tasks.collect();
    }
    let cases = vec![
        (
            "arrived".to_owned(),
            object([
                ("when", marked("(.events | length) > 0")),
                ("then", Data::string("arrived")),
            ]),
        ),
        (
            "missed".to_owned(),
            object([("then", Data::string("missed"))]),
        ),
    ];
    let mut arrived = arrived;
    arrived.set("then", Data::string("exit"));
    vec![
        ("choose".to_owned(), object([("switch", list(cases))])),
        ("arrived".to_owned(), arrived),
        ("missed".to_owned(), object([("set", marked(".data"))])),
    ]
}
/// Keeps the state data as it is at the beginning.
pub(super) fn begin() -> Data {
    let context = marked("$context + {data: .}");
    object([("set", marked(".")), ("export", object([("as", context)]))])
}
