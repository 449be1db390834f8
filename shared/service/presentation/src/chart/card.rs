//! The contents of a state in a diagram.

use swirl_model::workflow::{
    Body, Consume, EventState, Foreach, IterationMode, Listen, Parallel, State, StateKind, Until,
};

use super::{Build, Card, Group, readable};
use crate::line::{Line, Sign};
use crate::{details, tasks, words};

/// The lines of a state, and the groups below them.
#[derive(Default)]
struct Content {
    lines: Vec<Line>,
    groups: Vec<Group>,
}

impl Content {
    fn of_lines(lines: impl IntoIterator<Item = Line>) -> Content {
        Content {
            lines: lines.into_iter().collect(),
            groups: Vec::new(),
        }
    }

    fn of_groups(groups: impl IntoIterator<Item = Group>) -> Content {
        Content {
            lines: Vec::new(),
            groups: groups.into_iter().collect(),
        }
    }
}

impl Build<'_> {
    pub(super) fn card(&self, state: &State) -> Card {
        let Content { mut lines, groups } = self.content(state);
        lines.extend(
            state
                .timeout
                .map(|time| Line::new(Sign::Time, format!("at most {}", self.period(&time)))),
        );
        lines.extend(details::of_state(self.workflow, state));
        lines.extend(tasks::extended(self.workflow, state));
        Card {
            name: Line::new(Sign::None, &state.name),
            kind: tasks::word(state),
            compensating: state.used_for_compensation,
            lines: readable(lines),
            groups,
            mark: None,
            order: 0,
        }
    }

    fn content(&self, state: &State) -> Content {
        let line = |text: String| Content::of_lines([Line::new(Sign::None, text)]);
        let flow =
            |title: &str, flow| Content::of_groups([self.body(title.to_owned(), Body::Flow(flow))]);
        match &state.kind {
            StateKind::Callback(callback) => {
                let mut lines = self.actions(callback.actions);
                lines.push(Line::new(Sign::In, self.event(callback.event)));
                lines.extend(callback.timeout.map(|time| {
                    Line::new(Sign::Time, format!("waits at most {}", self.period(&time)))
                }));
                Content::of_lines(lines)
            }
            StateKind::Event(event) => self.event_state(event),
            StateKind::Foreach(foreach) => self.foreach(foreach),
            StateKind::Function(function) => flow(&function.name, function.body),
            StateKind::Do(list) => flow("", *list),
            StateKind::Emit(emit) => {
                let kind = emit.attributes.iter().find(|(name, _)| name == "type");
                let kind = kind.map(|(_, value)| words::template(self.workflow, value));
                Content::of_lines([Line::new(Sign::Out, kind.unwrap_or_default())])
            }
            StateKind::For(each) => {
                let items = words::template(self.workflow, &each.items);
                flow(&format!("each {} in {items}", each.item), each.body)
            }
            StateKind::Listen(listen) => self.listen(state, listen),
            StateKind::Raise(raise) => line(words::template(self.workflow, &raise.kind)),
            StateKind::Set(value) => line(words::template(self.workflow, value)),
            StateKind::Try(attempt) => {
                let body = self.body("try".to_owned(), Body::Flow(attempt.body));
                let handler = attempt
                    .handler
                    .map(|handler| self.body("catch".to_owned(), Body::Flow(handler)));
                Content::of_groups([body].into_iter().chain(handler))
            }
            StateKind::Inject(data) => line(data.to_string()),
            StateKind::Operation(list) => Content::of_lines(self.call(state, *list)),
            StateKind::Parallel(parallel) => self.parallel(parallel),
            StateKind::Sleep(time) => Content::of_lines([Line::new(Sign::Time, self.period(time))]),
            StateKind::Switch(_) | StateKind::SwitchEvents(_) => Content::default(),
        }
    }

    fn event_state(&self, event: &EventState) -> Content {
        let mut content = match &event.entries[..] {
            [entry] => Content::of_lines(self.entry(entry)),
            entries => {
                let how = if event.exclusive {
                    "the first of"
                } else {
                    "all of"
                };
                let untitled =
                    |entry| Group::new(Line::new(Sign::None, ""), self.entry(entry), None);
                Content {
                    lines: vec![Line::new(Sign::None, how)],
                    groups: entries.iter().map(untitled).collect(),
                }
            }
        };
        content.lines.extend(
            event
                .timeout
                .map(|time| Line::new(Sign::Time, format!("waits at most {}", self.period(&time)))),
        );
        content
    }

    fn foreach(&self, foreach: &Foreach) -> Content {
        let mode = match foreach.mode {
            IterationMode::Sequential => "one after another".to_owned(),
            IterationMode::Parallel => "all at once".to_owned(),
            IterationMode::Batches(count) => format!("in batches of {}", self.count(count)),
            IterationMode::Window(count) => format!("at most {} at once", self.count(count)),
        };
        let mut lines = vec![Line::new(Sign::None, mode)];
        lines.extend(
            foreach
                .pause
                .map(|time| Line::new(Sign::Time, format!("{} between", self.period(&time)))),
        );
        let title = format!("each {} in {}", foreach.param, self.text(foreach.input));
        Content {
            lines,
            groups: vec![self.body(title, foreach.body)],
        }
    }

    fn listen(&self, state: &State, listen: &Listen) -> Content {
        let how_many = |consume: &Consume| match (consume.filters.len(), consume.all) {
            (..=1, _) => "",
            (_, true) => "all of",
            (_, false) => "any of",
        };
        let names = |consume: &Consume| {
            let filters = consume.filters.iter();
            let names = filters.map(|filter| &self.workflow[filter.event].name);
            let lines = names.map(|name| Line::new(Sign::In, name));
            lines.collect::<Vec<_>>()
        };
        let mut content = match listen.source {
            Some(call) => Content::of_lines(self.call(state, call)),
            None => Content::default(),
        };
        let lines = &mut content.lines;
        let all_or_any = how_many(&listen.to);
        lines.extend((!all_or_any.is_empty()).then(|| Line::new(Sign::None, all_or_any)));
        lines.extend(names(&listen.to));
        match &listen.until {
            Some(Until::Condition(test)) => {
                let text = format!("until {}", self.text(*test));
                lines.push(Line::new(Sign::None, text));
            }
            Some(Until::Events(stops)) => {
                let text = format!("until {}", how_many(stops));
                lines.push(Line::new(Sign::None, text.trim_end()));
                lines.extend(names(stops));
            }
            None => {}
        }
        let each = listen.each.as_ref().and_then(|it| Some((it, it.body?)));
        content.groups.extend(
            each.map(|(each, body)| self.body(format!("each {}", each.item), Body::Flow(body))),
        );
        content
    }

    fn parallel(&self, parallel: &Parallel) -> Content {
        let how = match parallel.at_least {
            _ if parallel.race => "the first of".to_owned(),
            None => "all of".to_owned(),
            Some(count) => format!("at least {} of", self.count(count)),
        };
        let branches = parallel.branches.iter().map(|branch| {
            let mut group = self.body(branch.name.to_string(), branch.body);
            group.lines.extend(
                branch
                    .timeout
                    .map(|time| Line::new(Sign::Time, format!("at most {}", self.period(&time)))),
            );
            group
        });
        Content {
            lines: vec![Line::new(Sign::None, how)],
            groups: branches.collect(),
        }
    }
}
