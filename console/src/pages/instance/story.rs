//! The history of an instance: as much of it as a page considers, and the lines that it shows.

use swirl_api::Instant;
use swirl_api::history::{History, HistoryEntry, HistoryQuery};
use swirl_api::instance::{HISTORY, InstanceId};
use swirl_model::event::Event;
use swirl_presentation::steps::Steps;
use swirl_presentation::timeline::{Told, Tone};

use super::look::Look;
use crate::asking::Refusal;
use crate::timeline::{key, offset, took};
use crate::tree::tree;
use crate::visitor::Visitor;

/// How many lines of the history are on a page, and how many that fit a filter.
pub const LINES: usize = 100;
const FOUND_MAX: usize = 200;
/// A history with at most this many lines is considered as a whole, of a longer one only the last lines.
const WHOLE_MAX: u64 = 6_000;
const LAST: u64 = 2_000;
/// How often the history is read. Large entries come in more parts.
const READS_MAX: usize = 12;

/// The last part of a history.
pub struct Story {
    pub entries: Vec<HistoryEntry>,
    /// How many entries there are before these.
    pub before: usize,
    pub total: usize,
}

struct Reader<'v> {
    visitor: &'v Visitor,
    id: &'v str,
    left: usize,
}

impl Reader<'_> {
    async fn page(&mut self, query: HistoryQuery) -> Result<History, Refusal> {
        self.left = self.left.saturating_sub(1);
        let id = self.id.to_owned();
        let call = HISTORY.at(&InstanceId { id });
        self.visitor.asking.ask(call.query(query)).await
    }

    /// The entries after the first `from`, up to number `to`.
    async fn range(&mut self, from: u64, to: u64) -> Result<Story, Refusal> {
        let mut story: Option<Story> = None;
        let mut known = from;
        loop {
            let page = self.page(HistoryQuery {
                after: Some(known),
                to: Some(to),
                ..HistoryQuery::default()
            });
            let page = page.await?;
            let is_empty = page.entries.is_empty();
            known = page.known();
            match &mut story {
                Some(story) => story.entries.extend(page.entries),
                None => story = Some(Story::of(page)),
            }
            if is_empty || known >= to || self.left == 0 {
                break;
            }
        }
        Ok(story.unwrap_or(Story {
            entries: Vec::new(),
            before: known as usize,
            total: known as usize,
        }))
    }
}

impl Story {
    fn of(page: History) -> Story {
        Story {
            before: page.before as usize,
            total: page.total as usize,
            entries: page.entries,
        }
    }

    /// Up to this entry, or to the last one.
    pub async fn read(visitor: &Visitor, id: &str, at: Option<u64>) -> Result<Story, Refusal> {
        let mut reader = Reader {
            visitor,
            id,
            left: READS_MAX,
        };
        let last = match at {
            Some(at) => reader.range(at.saturating_sub(LAST), at).await?,
            None => {
                let page = reader.page(HistoryQuery {
                    last: Some(LAST as usize),
                    ..HistoryQuery::default()
                });
                Story::of(page.await?)
            }
        };
        let before = last.before as u64;
        if before == 0 || at.unwrap_or(last.total as u64) > WHOLE_MAX || reader.left == 0 {
            return Ok(last);
        }
        let mut whole = reader.range(0, before).await?;
        if whole.before + whole.entries.len() != last.before {
            return Ok(last);
        }
        whole.entries.extend(last.entries);
        Ok(Story {
            total: last.total,
            ..whole
        })
    }

    /// The lines from this one on, which may be before the part that is considered.
    async fn earlier(visitor: &Visitor, id: &str, from: usize) -> Result<Story, Refusal> {
        let mut reader = Reader {
            visitor,
            id,
            left: 1,
        };
        reader.range(from as u64, (from + LINES) as u64).await
    }

    pub fn end(&self) -> usize {
        self.before + self.entries.len()
    }
}

pub struct Line {
    pub number: usize,
    pub at: Instant,
    /// The time since the start of the instance.
    pub offset: String,
    pub tone: &'static str,
    pub place: String,
    pub text: String,
    pub data: String,
    /// The state that begins here, on pages that group lines; otherwise empty.
    pub group: String,
    /// The key of that state's step.
    pub group_step: String,
}

pub fn line(number: usize, entry: &HistoryEntry, begun: Instant, last: &mut Told) -> Line {
    let described = last.describe(entry);
    Line {
        number,
        at: entry.at,
        offset: offset(entry.at.0.0 - begun.0.0),
        tone: match described.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Plain => "",
            Tone::Dim => "dim",
        },
        place: described.place(),
        text: described.text.trim_start().to_owned(),
        data: match &entry.data {
            None => String::new(),
            Some(data) => tree(&data.clone().into()),
        },
        group: String::new(),
        group_step: String::new(),
    }
}

/// The lines that are shown, and where the others are.
#[derive(Default)]
pub struct Lines {
    pub all: Vec<Line>,
    pub earlier: Option<usize>,
    pub later: Option<usize>,
    /// How many fit the filter, if there is one.
    pub found: Option<usize>,
    /// How many lines the filter was applied to.
    pub searched: usize,
    /// The branches to choose from.
    pub branches: Vec<String>,
}

pub async fn lines(
    (visitor, id): (&Visitor, &str),
    story: &Story,
    steps: &Steps,
    look: &Look,
    begun: Instant,
) -> Result<Lines, Refusal> {
    let mut branches: Vec<String> = story
        .entries
        .iter()
        .filter_map(|entry| entry.place.clone())
        .collect();
    branches.sort_unstable();
    branches.dedup();
    branches.truncate(FOUND_MAX);
    let shown = match look.filters() {
        true => filtered(story, look, begun),
        false => {
            let end = story.end();
            let from = look.from.unwrap_or(end.saturating_sub(LINES));
            let other;
            let (part, first) = match from.checked_sub(story.before) {
                Some(skip) => {
                    let skip = skip.min(story.entries.len());
                    (&story.entries[skip..], story.before + skip)
                }
                None => {
                    other = Story::earlier(visitor, id, from).await?;
                    (&other.entries[..], other.before)
                }
            };
            let part = &part[..part.len().min(LINES)];
            let mut last = Told::default();
            let all = (first + 1..).zip(part);
            Lines {
                all: all
                    .map(|(number, entry)| line(number, entry, begun, &mut last))
                    .collect(),
                earlier: (first > 0).then(|| first.saturating_sub(LINES)),
                later: (first + part.len() < end).then_some(first + part.len()),
                ..Lines::default()
            }
        }
    };
    let mut shown = Lines { branches, ..shown };
    group(&mut shown.all, story, steps);
    Ok(shown)
}

/// Puts the names of states of the main flow before their lines.
fn group(lines: &mut [Line], story: &Story, steps: &Steps) {
    let mut last = None;
    for line in lines {
        let index = (line.number - 1).checked_sub(story.before);
        let step = index.and_then(|index| steps.of_line.get(index).copied().flatten());
        let root = step.and_then(|step| steps.path(step).first().copied());
        if let Some(root) = root.filter(|_| root != last) {
            let step = &steps.all[root];
            let took = step.to.map(|to| format!(", {}", took(to - step.from)));
            line.group = format!("{}{}", step.name, took.unwrap_or_default());
            line.group_step = key(steps, root, story.before);
        }
        last = root.or(last);
    }
}

fn filtered(story: &Story, look: &Look, begun: Instant) -> Lines {
    let mut last = Told::default();
    let text = look.text.as_deref().unwrap_or_default().to_lowercase();
    let branch = look.branch.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for (index, entry) in story.entries.iter().enumerate() {
        let described = last.describe(entry);
        let fits = fits_kind(
            entry,
            described.tone,
            look.show.as_deref().unwrap_or_default(),
        ) && match branch {
            "" => true,
            MAIN => entry.place.is_none(),
            branch => entry.place.as_deref() == Some(branch),
        };
        let has = |part: &str| part.to_lowercase().contains(&text);
        if fits && (text.is_empty() || has(&described.text) || has(&described.place())) {
            found.push(index);
        }
    }
    let count = found.len();
    let first = count.saturating_sub(FOUND_MAX);
    let mut last = Told::default();
    Lines {
        all: found[first..]
            .iter()
            .map(|index| {
                let number = story.before + index + 1;
                line(number, &story.entries[*index], begun, &mut last)
            })
            .collect(),
        found: Some(count),
        searched: story.entries.len(),
        ..Lines::default()
    }
}

/// The main flow among the branches of the filter.
const MAIN: &str = "-";

fn fits_kind(entry: &HistoryEntry, tone: Tone, wanted: &str) -> bool {
    let event = entry.event.event();
    match wanted {
        "errors" => {
            let is_error = matches!(
                event,
                Some(
                    Event::ErrorHandled { .. }
                        | Event::StateLeft { failed: true, .. }
                        | Event::BranchFailed { .. }
                )
            );
            tone == Tone::Bad || is_error
        }
        "events" => matches!(
            event,
            Some(
                Event::EventConsumed { .. } | Event::EventProduced { .. } | Event::TimedOut { .. }
            )
        ),
        "operators" => matches!(event, Some(Event::Operated { .. } | Event::Retried)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn story() -> Story {
        let entries = json!([
            {"at": "2026-01-01T00:00:00Z", "scope": "r", "event": "state_entered", "state": 0, "name": "A", "purpose": "Main"},
            {"at": "2026-01-01T00:00:01Z", "scope": "r.1.0", "place": "A / Pay", "event": "action_failed", "action": "pay",
             "attempt": 1, "error": {"name": "E", "message": "busy"}, "retry_ms": null},
            {"at": "2026-01-01T00:00:01Z", "scope": "r.1.0", "place": "A / Pay", "event": "branch_failed",
             "error": {"name": "E", "message": "busy"}},
            {"at": "2026-01-01T00:00:02Z", "scope": "r", "event": "event_consumed", "name": "paid", "source": "/s", "id": "1"},
            {"at": "2026-01-01T00:00:03Z", "scope": "r", "event": "ended", "status": "faulted",
             "error": {"name": "E", "message": "busy"}},
        ]);
        Story {
            entries: serde_json::from_value(entries).unwrap(),
            before: 10,
            total: 15,
        }
    }

    fn numbers(look: &Look) -> Vec<usize> {
        let story = story();
        let begun = story.entries[0].at;
        let found = filtered(&story, look, begun);
        assert_eq!((found.found, found.searched), (Some(found.all.len()), 5));
        found.all.iter().map(|line| line.number).collect()
    }

    #[test]
    fn lines_are_filtered() {
        let look = |show: &str, branch: &str, text: &str| Look {
            show: Some(show.to_owned()),
            branch: Some(branch.to_owned()),
            text: Some(text.to_owned()),
            ..Look::default()
        };
        assert_eq!(numbers(&look("errors", "", "")), [12, 13, 15]);
        assert_eq!(numbers(&look("events", "", "")), [14]);
        assert_eq!(numbers(&look("", MAIN, "")), [11, 14, 15]);
        assert_eq!(numbers(&look("", "A / Pay", "BUSY")), [12]);
        assert!(!Look::default().filters() && look("", "", "x").filters());
    }

    #[test]
    fn an_error_is_shown_once_and_states_are_named() {
        let story = story();
        let begun = story.entries[0].at;
        let steps = Steps::new(&story.entries, None);
        let mut last = Told::default();
        let all = (11..).zip(&story.entries);
        let mut lines: Vec<Line> = all
            .map(|(number, entry)| line(number, entry, begun, &mut last))
            .collect();
        group(&mut lines, &story, &steps);
        let busy = lines.iter().filter(|line| line.text.contains("busy"));
        assert_eq!(busy.count(), 1);
        assert_eq!(
            (lines[0].group.as_str(), lines[0].group_step.as_str()),
            ("A, 3.0 s", "s11")
        );
        assert!(lines[1..].iter().all(|line| line.group.is_empty()));
        assert_eq!(lines[1].offset, "+1.0 s");
    }
}
