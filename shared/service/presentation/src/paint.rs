//! Draws single parts: texts, cards, ends. The upper left corner of each drawing is at the origin.

use super::chart::{Card, Group, Mark, Node};
use super::icons;
use super::layout::Size;
use super::line::{Line, Sign};
use super::size::width;
use super::svg;

pub(super) const FONT: f64 = 13.0;
const SMALL: f64 = 11.0;
const LINE: f64 = 16.0;
const PAD: f64 = 10.0;
const HEAD: f64 = 38.0;
/// The width of the icon before a line.
const SIGN: f64 = 15.0;
/// The maximum width of a row of groups.
const ROW_MAX: f64 = 900.0;

/// A piece of SVG with its size.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub size: Size,
    pub svg: String,
}

impl Drawing {
    /// The drawing, moved to a position.
    pub fn at(&self, x: f64, y: f64) -> String {
        format!(
            "<g transform=\"translate({} {})\">\n{}</g>\n",
            num(x),
            num(y),
            self.svg
        )
    }
}

/// A number without unnecessary digits.
pub(super) fn num(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).replace("-0", "0")
}

/// Escapes a text for XML or HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

pub(super) fn text(class: &str, x: f64, y: f64, content: &str) -> String {
    let (x, y) = (num(x), num(y));
    format!(
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>\n",
        escape(content)
    )
}

fn icon(class: &str, x: f64, y: f64, scale: f64, path: &str) -> String {
    let (x, y) = (num(x), num(y));
    format!(
        "<path class=\"{class}\" transform=\"translate({x} {y}) scale({scale})\" d=\"{path}\"/>\n"
    )
}

/// A piece of SVG with a tooltip.
pub(super) fn with_title(lines: &[&str], svg: &str) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    format!(
        "<g class=\"told\"><title>{}</title>\n{svg}</g>\n",
        lines.join("\n")
    )
}

/// Lines of small text, one below the other.
pub(super) fn lines(lines: &[Line]) -> Drawing {
    let mut drawing = Drawing::default();
    for (index, line) in lines.iter().enumerate() {
        let y = index as f64 * LINE;
        let left = if line.detail { SIGN } else { 0.0 };
        let mut svg = String::new();
        let mut indent = left;
        if line.sign != Sign::None {
            let class = icons::class(line.sign);
            svg.push_str(&icon(class, left, y + 2.0, 0.75, icons::line(line.sign)));
            indent += SIGN;
        }
        svg.push_str(&text("small", indent, y + 12.0, &line.text));
        if line.full != line.text {
            svg = with_title(&[&line.full], &svg);
        }
        drawing.svg.push_str(&svg);
        drawing.size.w = drawing.size.w.max(indent + width(&line.text, SMALL));
    }
    drawing.size.h = lines.len() as f64 * LINE;
    drawing
}

/// `None` if a flow in it is too large.
pub(super) fn node(node: &Node) -> Option<Drawing> {
    Some(match node {
        Node::Start => circle("start", ""),
        Node::Timeout(after) => {
            let label = lines(&[Line::new(Sign::Time, after)]);
            let size = Size {
                w: label.size.w + 16.0,
                h: label.size.h + 8.0,
            };
            let frame = rect("timeout", size, size.h / 2.0);
            Drawing {
                size,
                svg: frame + &label.at(8.0, 4.0),
            }
        }
        Node::End { terminate, notes } => end(*terminate, notes),
        Node::State(card) => self::card(card)?,
    })
}

fn circle(class: &str, inner: &str) -> Drawing {
    let svg = format!("<circle class=\"{class}\" cx=\"10\" cy=\"10\" r=\"9\"/>\n{inner}");
    Drawing {
        size: Size { w: 20.0, h: 20.0 },
        svg,
    }
}

/// A ring with a dot in it, or with a cross if it terminates. Its notes are below it.
fn end(terminate: bool, notes: &[Line]) -> Drawing {
    let inner = if terminate {
        "<path class=\"cross\" d=\"M6 6L14 14M14 6L6 14\"/>\n"
    } else {
        "<circle class=\"dot\" cx=\"10\" cy=\"10\" r=\"5\"/>\n"
    };
    let ring = circle("end", inner);
    if notes.is_empty() {
        return ring;
    }
    let notes = lines(notes);
    let w = notes.size.w.max(20.0);
    let svg = ring.at((w - 20.0) / 2.0, 0.0) + &notes.at((w - notes.size.w) / 2.0, 22.0);
    Drawing {
        size: Size {
            w,
            h: 22.0 + notes.size.h,
        },
        svg,
    }
}

fn rect(class: &str, size: Size, radius: f64) -> String {
    format!(
        "<rect class=\"{class}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>\n",
        num(size.w),
        num(size.h),
        num(radius)
    )
}

fn card(card: &Card) -> Option<Drawing> {
    let below = lines(&card.lines);
    let groups: Option<Vec<Drawing>> = card.groups.iter().map(group).collect();
    let groups = in_rows(&groups?);
    let kind = if card.compensating {
        format!("{} (undoes)", card.kind)
    } else {
        card.kind.to_owned()
    };
    // Also in words, because some people can't distinguish the colours.
    let (class, says) = match card.mark {
        None => ("", String::new()),
        Some(Mark::Past) => (" past", "done".to_owned()),
        Some(Mark::Here) => (" here", "is here".to_owned()),
        Some(Mark::Failed) => (" failed", "failed here".to_owned()),
        Some(Mark::Caught) => (" caught", "left by an error".to_owned()),
        Some(Mark::Compensated) => (" compensated", "compensated".to_owned()),
        Some(Mark::Covered(times)) => (" covered", format!("ran {times}×")),
        Some(Mark::Uncovered) => (" uncovered", "not run".to_owned()),
        Some(Mark::Occupied {
            running,
            faulted,
            level,
        }) => (
            occupied_class(level, faulted > 0),
            occupied_words(running, faulted),
        ),
    };
    let says = match (card.order, says.is_empty()) {
        (0, _) | (_, true) => says,
        (order, false) => format!("{order}. {says}"),
    };
    let says_width = match says.is_empty() {
        true => 0.0,
        false => width(&says, SMALL) * 1.08 + 12.0,
    };
    let head = 22.0 + (width(&card.name.text, FONT) * 1.08).max(width(&kind, SMALL) + says_width);
    let inner = head.max(below.size.w).max(groups.size.w);
    let mut h = HEAD;
    let mut svg = icon("icon", PAD, 9.0, 1.0, icons::kind(card.kind));
    svg.push_str(&text("name", PAD + 22.0, 17.0, &card.name.text));
    svg.push_str(&text("kind", PAD + 22.0, 31.0, &kind));
    if !card.lines.is_empty() {
        svg.push_str(&below.at(PAD, h + 2.0));
        h += below.size.h + 4.0;
    }
    if !card.groups.is_empty() {
        svg.push_str(&groups.at(PAD, h + 4.0));
        h += groups.size.h + 4.0;
    }
    let size = Size {
        w: (inner + 2.0 * PAD).max(90.0).ceil(),
        h: (h + 8.0).ceil(),
    };
    if !says.is_empty() {
        let x = size.w - PAD - says_width + 12.0;
        svg.push_str(&text("title told", x, 31.0, &says));
    }
    let undo = if card.compensating { " undo" } else { "" };
    let class = format!("card{undo}{class}");
    let head = format!("{}: {kind}", card.name.full);
    let mut about = vec![head.as_str()];
    about.extend(card.lines.iter().map(|line| line.full.as_str()));
    Some(Drawing {
        size,
        svg: with_title(&about, &(rect(&class, size, 9.0) + &svg)),
    })
}

fn occupied_class(level: u8, ails: bool) -> &'static str {
    match (level, ails) {
        (0 | 1, false) => " busy1",
        (0 | 1, true) => " busy1 ailing",
        (2, false) => " busy2",
        (2, true) => " busy2 ailing",
        (_, false) => " busy3",
        (_, true) => " busy3 ailing",
    }
}

fn occupied_words(running: u64, faulted: u64) -> String {
    match (running, faulted) {
        (running, 0) => format!("{running} here"),
        (0, faulted) => format!("{faulted} failed"),
        (running, faulted) => format!("{running} here, {faulted} failed"),
    }
}

/// Places drawings side by side, and wraps them into rows of limited width.
pub(super) fn in_rows(drawings: &[Drawing]) -> Drawing {
    const GAP: f64 = 10.0;
    let mut all = Drawing::default();
    let (mut x, mut y, mut row_height) = (0.0, 0.0, 0.0f64);
    for drawing in drawings {
        if x > 0.0 && x + drawing.size.w > ROW_MAX {
            y += row_height + GAP;
            (x, row_height) = (0.0, 0.0);
        }
        all.svg.push_str(&drawing.at(x, y));
        all.size.w = all.size.w.max(x + drawing.size.w);
        row_height = row_height.max(drawing.size.h);
        x += drawing.size.w + GAP;
    }
    all.size.h = y + row_height;
    all
}

fn group(group: &Group) -> Option<Drawing> {
    let below = lines(&group.lines);
    let mut w = below.size.w;
    let mut h = 6.0;
    let mut svg = String::new();
    let title = match group.has_failed {
        true => format!("{} failed", group.title.text).trim().to_owned(),
        false => group.title.text.clone(),
    };
    if !title.is_empty() {
        svg.push_str(&text("title", 8.0, h + 12.0, &title));
        w = w.max(width(&title, SMALL) * 1.08);
        h += 18.0;
    }
    svg.push_str(&below.at(8.0, h));
    h += below.size.h;
    if let Some(flow) = &group.flow {
        let flow = svg::flow(flow)?;
        svg.push_str(&flow.at(8.0, h + 4.0));
        w = w.max(flow.size.w);
        h += flow.size.h + 4.0;
    }
    let size = Size {
        w: (w + 16.0).ceil(),
        h: (h + 6.0).ceil(),
    };
    let class = match group.has_failed {
        true => "group failed",
        false => "group",
    };
    let mut svg = rect(class, size, 6.0) + &svg;
    if !group.title.full.is_empty() {
        svg = with_title(&[&group.title.full], &svg);
    }
    Some(Drawing { size, svg })
}
