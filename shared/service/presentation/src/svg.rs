//! A chart as an SVG image.
//!
//! A style sheet sets the colours and has a variant for dark environments. The image has its own background, so it is
//! readable anywhere.

use super::chart::{Chart, Edge, Flow, Node, Style, Trace};
use super::layout::{LOOP_WIDTH, Layout, Link, Point, Route, Size, layout};
use super::paint::{Drawing, escape, in_rows, lines, node, num, text, with_title};
use super::size::width;
use super::text::cut;

const MARGIN: f64 = 24.0;
/// The longest name of a state in the tooltip of an edge, in characters.
const NAME_CHARS_MAX: usize = 100;

pub(super) const STYLE: &str = "
text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2937}
.head{font-size:16px;font-weight:bold}.name{font-size:13px;font-weight:bold}
.kind,.small,.title,.caption{font-size:11px}.kind,.caption{fill:#5b6472}.title{font-weight:bold}
.ground{fill:#ffffff}.card{fill:#eef4ff;stroke:#3b6fb6;stroke-width:1.3}
.undo{fill:#fdf3e3;stroke:#a8701c}.group{fill:#ffffff;stroke:#8fa6c6;stroke-dasharray:4 3}
.icon,.sign{fill:none;stroke:#3b6fb6;stroke-width:1.4;stroke-linecap:round;stroke-linejoin:round}
.out{fill:#a9c6ee}.start,.dot{fill:#1f2937}.end{fill:#ffffff;stroke:#1f2937;stroke-width:2}
.cross{stroke:#1f2937;stroke-width:2.4}.timeout{fill:#f3f4f6;stroke:#6b7280}
.edge{fill:none;stroke:#4b5563;stroke-width:1.4}.tip{fill:#4b5563}
.error{stroke:#c62828;stroke-dasharray:6 4}.tip-error{fill:#c62828}
.compensation{stroke:#a8701c;stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:2}.tip-compensation{fill:#a8701c}
.late{stroke:#6b7280;stroke-dasharray:10 4}.tip-late{fill:#6b7280}.label{fill:#ffffff}
.past{fill:#e8f5ec;stroke:#2e7d4f}.here{fill:#fff7d6;stroke:#9a6b00;stroke-width:2.6}.failed{fill:#fdecec;stroke:#c62828;stroke-width:2.6}
.caught{fill:#fdf0f0;stroke:#c62828;stroke-dasharray:6 3}.compensated{fill:#f1ecfb;stroke:#6d4bb5;stroke-width:2}
.taken{stroke:#2e7d4f;stroke-width:2.6}.tip-taken{fill:#2e7d4f}
.covered{fill:#e8f5ec;stroke:#2e7d4f}.uncovered{fill:#fdecec;stroke:#c62828;stroke-width:2;stroke-dasharray:6 4}
.untaken{stroke:#c62828;stroke-width:2;stroke-dasharray:2 4}.tip-untaken{fill:#c62828}
.busy1{fill:#fff8ec;stroke:#9a6b00}.busy2{fill:#ffeed2;stroke:#9a6b00;stroke-width:2}.busy3{fill:#ffe2b5;stroke:#9a6b00;stroke-width:3}
.ailing{stroke:#c62828}
@media (prefers-color-scheme:dark){
text{fill:#e5e7eb}.kind,.caption{fill:#a3adbb}.ground,.label{fill:#15181d}
.card{fill:#1c2738;stroke:#7ea6de}.undo{fill:#33281a;stroke:#d9a458}.group{fill:#15181d;stroke:#5c7290}
.icon,.sign{stroke:#8fb4ea}.out{fill:#3f5f8c}.start,.dot{fill:#e5e7eb}.end{fill:#15181d;stroke:#e5e7eb}
.cross{stroke:#e5e7eb}.timeout{fill:#23272f;stroke:#9ca3af}.edge{stroke:#a3adbb}.tip{fill:#a3adbb}
.error{stroke:#f28b82}.tip-error{fill:#f28b82}.compensation{stroke:#d9a458}.tip-compensation{fill:#d9a458}
.late{stroke:#9ca3af}.tip-late{fill:#9ca3af}
.past{fill:#16301f;stroke:#6cc28e}.here{fill:#3a3010;stroke:#e8c15a}.failed{fill:#3b1a1a;stroke:#f28b82}
.caught{fill:#2a1718;stroke:#f28b82}.compensated{fill:#271f3d;stroke:#b79cf2}
.taken{stroke:#6cc28e}.tip-taken{fill:#6cc28e}
.covered{fill:#16301f;stroke:#6cc28e}.uncovered{fill:#3b1a1a;stroke:#f28b82}
.untaken{stroke:#f28b82}.tip-untaken{fill:#f28b82}
.busy1{fill:#241f12;stroke:#e8c15a}.busy2{fill:#332a10;stroke:#e8c15a}.busy3{fill:#423611;stroke:#e8c15a}
.ailing{stroke:#f28b82}}
";

/// The classes of a line and its tip.
fn classes(style: Style) -> (&'static str, &'static str) {
    match style {
        Style::Normal => ("edge", "tip"),
        Style::Error => ("edge error", "tip-error"),
        Style::Compensation => ("edge compensation", "tip-compensation"),
        Style::Timeout => ("edge late", "tip-late"),
    }
}

/// The largest number of states in a simple picture, besides those with a mark.
const SIMPLE_MAX: usize = 1_000;

/// `None` if its layout would take too long.
pub(super) fn draw(chart: &Chart) -> Option<String> {
    if chart.is_simple {
        return Some(draw_simple(chart));
    }
    Some(framed(&chart.title, &chart.captions, &flow(&chart.flow)?))
}

/// Draws the states side by side.
pub(super) fn draw_simple(chart: &Chart) -> String {
    let nodes = chart.flow.nodes.iter().enumerate();
    let is_shown = |(at, node): &(usize, &Node)| {
        *at < SIMPLE_MAX || matches!(node, Node::State(card) if card.mark.is_some())
    };
    let shown: Vec<Drawing> = nodes
        .filter(is_shown)
        .take(2 * SIMPLE_MAX)
        .map(|(_, shown)| node(shown).unwrap_or_default())
        .collect();
    let left_out = chart.flow.nodes.len() - shown.len();
    let mut captions = chart.captions.clone();
    if left_out > 0 {
        captions.push(format!("{left_out} more states are not shown"));
    }
    framed(&chart.title, &captions, &in_rows(&shown))
}

fn framed(title: &str, captions: &[String], body: &Drawing) -> String {
    let head = 30.0 + captions.len() as f64 * 15.0;
    let widest = captions
        .iter()
        .map(|caption| width(caption, 11.0))
        .fold(0.0, f64::max);
    let w = (body.size.w.max(width(title, 16.0) * 1.1).max(widest) + 2.0 * MARGIN).ceil();
    let h = (body.size.h + head + 2.0 * MARGIN).ceil();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{0}\" height=\"{1}\"/>\n",
        num(w),
        num(h),
        escape(title)
    );
    svg.push_str(&text("head", MARGIN, MARGIN + 12.0, title));
    for (index, caption) in captions.iter().enumerate() {
        svg.push_str(&text(
            "caption",
            MARGIN,
            MARGIN + 30.0 + index as f64 * 15.0,
            caption,
        ));
    }
    svg.push_str(&body.at((w - body.size.w) / 2.0, MARGIN + head));
    svg.push_str("</svg>\n");
    svg
}

/// A flow. Edges are drawn below nodes. `None` if its layout would take too long.
pub(super) fn flow(flow: &Flow) -> Option<Drawing> {
    let nodes: Vec<Drawing> = flow.nodes.iter().map(node).collect::<Option<_>>()?;
    let labels: Vec<Drawing> = flow.edges.iter().map(|edge| lines(&edge.labels)).collect();
    let sizes: Vec<Size> = nodes.iter().map(|drawing| drawing.size).collect();
    let links: Vec<Link> = flow
        .edges
        .iter()
        .zip(&labels)
        .map(|(edge, label)| Link {
            from: edge.from,
            to: edge.to,
            label: padded(label.size),
        })
        .collect();
    let Layout {
        size,
        nodes: places,
        routes,
    } = layout(&sizes, &links)?;
    let mut svg = String::new();
    let about: Vec<Vec<String>> = flow.edges.iter().map(|edge| about(flow, edge)).collect();
    let titled = |about: &[String], svg: &str| {
        let lines: Vec<&str> = about.iter().map(String::as_str).collect();
        with_title(&lines, svg)
    };
    for ((edge, route), about) in flow.edges.iter().zip(&routes).zip(&about) {
        svg.push_str(&titled(about, &line(edge, route)));
    }
    for (drawing, place) in nodes.iter().zip(&places) {
        if let Some(place) = place {
            svg.push_str(&drawing.at(place.x, place.y));
        }
    }
    for ((label, route), about) in labels.iter().zip(&routes).zip(&about) {
        if let Some(middle) = route.label {
            let (x, y) = (middle.x - label.size.w / 2.0, middle.y - label.size.h / 2.0);
            let ground = format!(
                "<rect class=\"label\" x=\"-2\" width=\"{}\" height=\"{}\"/>\n",
                num(label.size.w + 4.0),
                num(label.size.h)
            );
            let drawing = Drawing {
                size: label.size,
                svg: titled(about, &(ground + &label.svg)),
            };
            svg.push_str(&drawing.at(x, y));
        }
    }
    Some(Drawing { size, svg })
}

/// The source, target and conditions of an edge.
fn about(flow: &Flow, edge: &Edge) -> Vec<String> {
    let name = |index: usize| match &flow.nodes[index] {
        Node::Start => "start",
        Node::Timeout(after) => after,
        Node::State(card) => &card.name.full,
        Node::End { .. } => "end",
    };
    let name = |index: usize| cut(name(index), NAME_CHARS_MAX);
    let mut about = vec![format!("{} → {}", name(edge.from), name(edge.to))];
    about.extend(edge.labels.iter().map(|label| label.full.clone()));
    about
}

fn padded(size: Size) -> Size {
    if size.w > 0.0 {
        Size {
            w: size.w + 8.0,
            h: size.h,
        }
    } else {
        Size::default()
    }
}

fn line(edge: &Edge, route: &Route) -> String {
    let (style, tip) = classes(edge.style);
    let (class, tip) = match edge.trace {
        Trace::Plain => (style.to_owned(), tip),
        Trace::Taken => (format!("{style} taken"), "tip-taken"),
        Trace::Uncovered => (format!("{style} untaken"), "tip-untaken"),
    };
    let [first, .., last] = route.points[..] else {
        return String::new();
    };
    let at = |point: Point| format!("{} {}", num(point.x), num(point.y));
    let mut path = format!("M{}", at(first));
    if route.is_loop {
        let x = num(first.x + LOOP_WIDTH * 1.3);
        path.push_str(&format!(
            "C{x} {} {x} {} {}",
            num(first.y),
            num(last.y),
            at(last)
        ));
        return format!(
            "<path class=\"{class}\" d=\"{path}\"/>\n<path class=\"{tip}\" d=\"M{} l8 -4 v8z\"/>\n",
            at(last)
        );
    }
    for pair in route.points.windows(2) {
        let [from, to] = pair else { continue };
        if from.x == to.x {
            path.push_str(&format!("V{}", num(to.y)));
        } else {
            let middle = num((from.y + to.y) / 2.0);
            path.push_str(&format!(
                "C{} {middle} {} {middle} {}",
                num(from.x),
                num(to.x),
                at(*to)
            ));
        }
    }
    // An edge that leads upwards arrives from below.
    let before = route.points[route.points.len() - 2];
    let y = if before.y > last.y { "8" } else { "-8" };
    format!(
        "<path class=\"{class}\" d=\"{path}\"/>\n<path class=\"{tip}\" d=\"M{} l-4 {y} h8z\"/>\n",
        at(last)
    )
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::Workflow;

    use crate::{Format, render, sample};

    #[test]
    fn samples_are_drawn_the_same_each_time() {
        for (name, workflow) in sample::all() {
            let svg = render(&workflow, Format::Svg);
            assert_eq!(svg, render(&workflow, Format::Svg), "{name}");
            assert!(
                svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
                "{name}"
            );
            let opened = svg.matches("<g ").count();
            assert_eq!(opened, svg.matches("</g>").count(), "{name}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        }
    }

    /// States in a row, and as many ways from each state to the last one as are given.
    fn row(states: usize, ways: usize) -> Workflow {
        use swirl_model::workflow::*;
        let last = StateId(states as u32 - 1);
        let way = |to| {
            Next::Transition(Transition {
                to,
                compensate: false,
                produce: Vec::new(),
                guard: None,
            })
        };
        let state = |index: usize| State {
            name: format!("S{index}").into(),
            kind: StateKind::Inject(swirl_model::Data::NULL),
            next: (index + 1 < states).then(|| way(StateId(index as u32 + 1))),
            on_errors: match index + 1 < states {
                true => (0..ways)
                    .map(|_| Handler {
                        then: Then::Next(way(last)),
                        ..Handler::default()
                    })
                    .collect(),
                false => Vec::new(),
            },
            ..State::default()
        };
        Workflow {
            id: "row".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: (0..states as u32).map(StateId).collect(),
                ..Flow::default()
            }],
            states: (0..states).map(state).collect(),
            ..Workflow::default()
        }
    }

    #[test]
    fn large_workflows_have_simple_pictures() {
        let whole = |workflow: &Workflow| {
            let svg = render(workflow, Format::Svg);
            assert!(svg.len() < 2_000_000, "{}", svg.len());
            !svg.contains("too large to be drawn as a whole")
        };
        assert!(whole(&row(900, 0)));
        assert!(!whole(&row(1_001, 0)), "too many states");
        assert!(whole(&row(10, 200)));
        assert!(!whole(&row(10, 230)), "too many ways");
        // Few states and ways, but each way crosses most of the others.
        assert!(whole(&row(100, 1)));
        assert!(!whole(&row(300, 1)), "too much to lay out");
        // However large it is, an instance's state is shown.
        let large = row(3_000, 0);
        let svg = crate::render_with(&large, &crate::Trail::at("S2999"));
        assert!(svg.contains("is here") && svg.contains("1999 more states are not shown"));
        assert!(svg.contains(">S999<") && !svg.contains(">S1000<"));
    }

    #[test]
    fn texts_are_escaped() {
        let (_, mut workflow) = sample::all().remove(0);
        workflow.name = Some("<a> & \"b\"".to_owned());
        let svg = render(&workflow, Format::Svg);
        assert!(svg.contains("&lt;a&gt; &amp; &quot;b&quot;") && !svg.contains("<a>"));
    }

    #[test]
    fn everything_is_marked() {
        let text: String = sample::all()
            .iter()
            .map(|(_, workflow)| render(workflow, Format::Svg))
            .collect();
        for mark in [
            "edge error",
            "edge compensation",
            "edge late",
            "class=\"timeout\"",
            "sign out",
            "card undo",
            "class=\"cross\"",
            "class=\"group\"",
        ] {
            assert!(text.contains(mark), "{mark}");
        }
    }
}
