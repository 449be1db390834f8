//! The steps of an instance on a common scale of time, as rows that fold. Selecting a row shows its step.
//!
//! The number of rendered steps is bounded: of many that are alike, the first ones and those that failed or are under way
//! are shown, and a link leads to the others.

use std::collections::HashSet;

use swirl_presentation::steps::{Kind, Mark, Outcome, Step, Steps};

use crate::scale::{Scale, WIDTH};
use crate::tree::escape;

/// How many steps within another are shown before one asks for all, and after that.
const CHILDREN_MAX: usize = 20;
const ALL_MAX: usize = 1_000;
/// The limit on all rows.
const ROWS_MAX: usize = 1_200;
/// With at most this many rows all are unfolded.
const UNFOLDED_MAX: usize = 60;
/// Deeper rows aren't indented further.
const INDENTS_MAX: usize = 8;
/// The least width of a bar.
const BAR_MIN: f64 = 4.0;
const MARKS_MAX: usize = 40;
const GAPS_MAX: usize = 12;
/// How many labels the axis has.
const LABELS: usize = 5;

/// How the steps are shown.
pub struct Shown<'s> {
    pub steps: &'s Steps,
    /// The number of the entry before the first one that is known.
    pub before: usize,
    pub now: i64,
    pub chosen: Option<usize>,
    /// The step of which all parts are shown; [`TOP`] for the main flow.
    pub whole: Option<&'s str>,
    /// The addresses of the page with its other parameters, to which the chosen step or the whole one is added.
    pub choose: &'s str,
    pub unfold: &'s str,
    pub by_clock: bool,
}

/// The main flow, in place of the key of a step.
pub const TOP: &str = "top";

/// The name of a step in addresses: it stays the same while the history grows.
pub fn key(steps: &Steps, step: usize, before: usize) -> String {
    let one = &steps.all[step];
    let kind = match one.kind {
        Kind::State => 's',
        Kind::Branch | Kind::Iteration => 'b',
        Kind::Action => 'a',
        Kind::Attempt => 't',
        Kind::Wait => 'w',
    };
    format!("{kind}{}", before + one.first + 1)
}

pub fn with_key(steps: &Steps, before: usize, wanted: &str) -> Option<usize> {
    let mut all = 0..steps.all.len();
    all.find(|step| key(steps, *step, before) == wanted && is_reached(steps, *step))
}

/// Attempts that were joined with their action belong to no step any more.
fn is_reached(steps: &Steps, step: usize) -> bool {
    match steps.all[step].parent {
        Some(parent) => steps.all[parent].children.contains(&step),
        None => true,
    }
}

/// The class of a row, its sign and its word; no word if it is done.
pub fn outcome_words(step: &Step) -> (&'static str, &'static str, &'static str) {
    match (step.outcome, step.kind) {
        (Outcome::Open, Kind::Wait) => ("waiting", "◷", "waiting"),
        (Outcome::Open, Kind::State) => ("here", "▶", "is here"),
        (Outcome::Open, _) => ("here", "▶", "under way"),
        (Outcome::Done, Kind::Wait) => ("wait", "◷", ""),
        (Outcome::Done, _) if step.compensates => ("undoes", "↶", "compensates"),
        (Outcome::Done, _) => ("past", "✓", ""),
        (Outcome::Failed, _) => ("failed", "✕", "failed"),
        (Outcome::Caught, _) => ("caught", "✕", "left by an error"),
        (Outcome::Compensated, _) => ("compensated", "↶", "compensated"),
        (Outcome::Skipped, _) => ("skipped", "»", "skipped"),
        (Outcome::Stopped, _) => ("stopped", "■", "stopped"),
    }
}

pub fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::State => "state",
        Kind::Branch => "branch",
        Kind::Iteration => "iteration",
        Kind::Action => "action",
        Kind::Attempt => "",
        Kind::Wait => "wait",
    }
}

/// Rows for all steps of the main flow; empty without steps.
pub fn timeline(shown: &Shown<'_>) -> String {
    let steps = shown.steps;
    if steps.roots.is_empty() {
        return String::new();
    }
    let ends = steps
        .all
        .iter()
        .flat_map(|step| [step.from, step.to.unwrap_or(shown.now)]);
    let instants: Vec<i64> = ends.collect();
    let begun = instants.iter().copied().min().unwrap_or_default();
    let scale = Scale::new(instants);
    let mut rows = Rows {
        shown,
        scale: &scale,
        interesting: interesting(shown),
        is_small: steps.all.len() <= UNFOLDED_MAX,
        left: ROWS_MAX,
        html: String::new(),
    };
    rows.axis(begun);
    rows.list(None, &steps.roots, 0);
    rows.html
}

/// Those that failed, are under way or are chosen, with those around them.
fn interesting(shown: &Shown<'_>) -> HashSet<usize> {
    let all = shown.steps.all.iter().enumerate();
    // Attempts fail also in actions that succeed.
    let some = all.filter(|(_, step)| match step.outcome {
        Outcome::Open => true,
        Outcome::Failed => step.kind != Kind::Attempt,
        _ => false,
    });
    let some = some.map(|(step, _)| step).chain(shown.chosen);
    let mut found = HashSet::new();
    for step in some {
        let mut at = Some(step);
        while let Some(step) = at.filter(|step| found.insert(*step)) {
            at = shown.steps.all[step].parent;
        }
    }
    found
}

struct Rows<'s> {
    shown: &'s Shown<'s>,
    scale: &'s Scale,
    interesting: HashSet<usize>,
    is_small: bool,
    left: usize,
    html: String,
}

impl Rows<'_> {
    fn push(&mut self, text: &str) {
        self.html.push_str(text);
    }

    fn axis(&mut self, begun: i64) {
        self.push("<div class=\"axis\" aria-hidden=\"true\"><span></span><span class=\"labels\">");
        let mut last = String::new();
        for index in 0..LABELS {
            let place = WIDTH * index as f64 / (LABELS - 1) as f64;
            let instant = self.scale.instant(place);
            let text = match self.shown.by_clock {
                true => clock(instant),
                false => format!("<span>{}</span>", offset(instant - begun)),
            };
            // Of a time that is shorter than the units, one label says everything.
            self.push(if text == last { "<span></span>" } else { &text });
            last = text;
        }
        self.push("</span><span></span></div>");
    }

    fn key(&self, step: usize) -> String {
        key(self.shown.steps, step, self.shown.before)
    }

    /// The steps within another one.
    fn list(&mut self, parent: Option<usize>, children: &[usize], depth: usize) {
        let key = parent.map_or_else(|| TOP.to_owned(), |parent| self.key(parent));
        let most = match self.shown.whole == Some(&*key) {
            true => ALL_MAX,
            false => CHILDREN_MAX,
        };
        let picked = self.picked(children, most);
        let left_out = children.len() - picked.len();
        let tag = if depth == 0 {
            "<ul class=\"steps\">"
        } else {
            "<ul>"
        };
        self.push(tag);
        for child in picked {
            if self.left == 0 {
                self.push("<li class=\"dim more\">There is too much for one page.</li>");
                break;
            }
            self.row(child, depth, children.len() > CHILDREN_MAX);
        }
        if left_out > 0 && most == ALL_MAX {
            let text =
                format!("<li class=\"dim more\">{left_out} more are too many for one page.</li>");
            self.push(&text);
        } else if left_out > 0 {
            let failed = children
                .iter()
                .filter(|child| self.shown.steps.all[**child].outcome == Outcome::Failed)
                .count();
            let of_these = match failed {
                0 => String::new(),
                failed => format!(" ({failed} of these failed)"),
            };
            let (address, total) = (self.shown.unfold, children.len());
            let indent = depth.min(INDENTS_MAX);
            let link = format!(
                "<li class=\"more d{indent}\"><a href=\"{address}all={key}#timeline\">Show all {total}{of_these}</a></li>"
            );
            self.push(&link);
        }
        self.push("</ul>");
    }

    /// Those that are interesting, and as many others as there is room for, in their order.
    fn picked(&self, children: &[usize], most: usize) -> Vec<usize> {
        if children.len() <= most {
            return children.to_vec();
        }
        let is_interesting = |child: &&usize| self.interesting.contains(*child);
        // The chosen one is shown in any case.
        let path = self.shown.chosen.map(|step| self.shown.steps.path(step));
        let chosen = children
            .iter()
            .filter(|child| path.iter().flatten().any(|step| step == *child));
        let some = children.iter().filter(is_interesting);
        let mut rest = children.to_vec();
        // Of those in a row the last ones matter most.
        let first = children
            .first()
            .map(|first| self.shown.steps.all[*first].kind);
        if !matches!(first, Some(Kind::Branch | Kind::Iteration)) {
            rest.reverse();
        }
        let mut picked: HashSet<usize> = chosen.copied().collect();
        for child in some.chain(&rest) {
            if picked.len() >= most {
                break;
            }
            picked.insert(*child);
        }
        let all = children.iter().copied();
        all.filter(|child| picked.contains(child)).collect()
    }

    /// `of_many`: what is within it isn't rendered unless it is interesting.
    fn row(&mut self, number: usize, depth: usize, of_many: bool) {
        self.left -= 1;
        let step = &self.shown.steps.all[number];
        let is_interesting = self.interesting.contains(&number);
        let is_chosen = self.shown.chosen == Some(number);
        let key = self.key(number);
        let (class, sign, word) = outcome_words(step);
        let indent = depth.min(INDENTS_MAX);
        let current = match is_chosen {
            true => " aria-current=\"true\"",
            false => "",
        };
        let (name, address) = (escape(&step.name), self.shown.choose);
        let kind = match kind_word(step.kind) {
            "" => String::new(),
            kind => format!(" <span class=\"kind\">{kind}</span>"),
        };
        let took = took(step.to.unwrap_or(self.shown.now).saturating_sub(step.from));
        let word = match word {
            "" => String::new(),
            word => format!(" <b>{word}</b>"),
        };
        let row = format!(
            "<li><a class=\"step {class} d{indent}\" href=\"{address}step={key}#step\"{current}>\
             <span class=\"name\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span> <span class=\"words\">{name}</span>{kind}{}</span>\
             {}<span class=\"took\">{took}{word}</span></a>",
            badges(self.shown.steps, step),
            self.bar(step, class),
        );
        self.push(&row);
        if !step.children.is_empty() {
            if of_many && !is_interesting && self.shown.whole != Some(&*key) {
                let link = format!(
                    "<a class=\"fold d{indent}\" href=\"{address}step={key}#timeline\" aria-label=\"Show what is within {name}\"></a>"
                );
                self.push(&link);
            } else {
                let is_open = self.is_small || is_interesting || self.shown.whole == Some(&*key);
                let open = if is_open { " open" } else { "" };
                let fold = format!(
                    "<details class=\"fold\"{open}><summary class=\"d{indent}\" aria-label=\"What is within {name}\"></summary>"
                );
                self.push(&fold);
                self.list(Some(number), &step.children, depth + 1);
                self.push("</details>");
            }
        }
        self.push("</li>");
    }

    fn bar(&self, step: &Step, class: &str) -> String {
        let from = self.scale.place(step.from);
        let to = self.scale.place(step.to.unwrap_or(self.shown.now));
        let width = (to - from).max(BAR_MIN);
        let from = from.min(WIDTH - width);
        let mut svg = String::from(
            "<svg class=\"track\" viewBox=\"0 0 1000 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        );
        for (begin, end) in self.scale.gaps.iter().take(GAPS_MAX) {
            let (begin, end) = (self.scale.place(*begin), self.scale.place(*end));
            svg.push_str(&format!(
                "<rect class=\"gap\" x=\"{begin:.1}\" width=\"{:.1}\" height=\"20\"/>",
                end - begin
            ));
        }
        svg.push_str(&format!(
            "<rect class=\"bar {class}\" x=\"{from:.1}\" y=\"4\" width=\"{width:.1}\" height=\"12\"/>"
        ));
        for (mark, at) in step.marks.iter().take(MARKS_MAX) {
            let class = match mark {
                Mark::Retried => "retried",
                Mark::TimedOut => "late",
                Mark::Compensated => "undone",
                Mark::Operated => "operated",
            };
            svg.push_str(&format!(
                "<rect class=\"mark {class}\" x=\"{:.1}\" y=\"1\" width=\"3\" height=\"18\"/>",
                self.scale.place(*at).min(WIDTH - 3.0)
            ));
        }
        svg.push_str("</svg>");
        svg
    }
}

/// The outcome of a step in words. A branch that is folded shows what its actions went through, too.
fn badges(steps: &Steps, step: &Step) -> String {
    let is_branch = matches!(step.kind, Kind::Branch | Kind::Iteration);
    let within = step.children.iter().filter(|_| is_branch);
    let within = within.flat_map(|child| &steps.all[*child].marks);
    let marks: Vec<Mark> = step
        .marks
        .iter()
        .chain(within)
        .map(|(mark, _)| *mark)
        .collect();
    let count = |mark: Mark| marks.iter().filter(|one| **one == mark).count();
    let mut text = String::new();
    for (mark, sign, word) in [
        (Mark::Retried, "↻", "retried"),
        (Mark::TimedOut, "◷", "timed out"),
        (Mark::Operated, "●", "operator"),
    ] {
        let (short, long) = match count(mark) {
            0 => continue,
            1 => (sign.to_owned(), word.to_owned()),
            times => (format!("{sign} {times}"), format!("{word} {times}×")),
        };
        text.push_str(&format!(
            " <span class=\"badge\" title=\"{long}\"><span aria-hidden=\"true\">{short}</span><span class=\"hidden\">{long}</span></span>"
        ));
    }
    text
}

/// A time of day, which a script makes local.
fn clock(instant: i64) -> String {
    let at = swirl_api::Instant(swirl_model::time::Timestamp(instant));
    let text = at.to_string();
    let time = text.get(11..23).unwrap_or(&text);
    format!("<time class=\"clock\" datetime=\"{text}\">{time}</time>")
}

/// The time since the beginning, for people.
pub fn offset(ms: i64) -> String {
    format!("+{}", took(ms.max(0)))
}

/// A duration as text for people.
pub fn took(ms: i64) -> String {
    let seconds = ms as f64 / 1000.0;
    match ms {
        ..=999 => format!("{ms} ms"),
        1_000..=59_999 => format!("{seconds:.1} s"),
        60_000..=3_599_999 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        3_600_000..=86_399_999 => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
        _ => format!("{} d {} h", ms / 86_400_000, ms / 3_600_000 % 24),
    }
}

#[cfg(test)]
mod tests;
