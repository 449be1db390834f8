//! A plot with logarithmic axes, as SVG that is readable on light and dark pages.

use std::fmt::Write;

use crate::cluster::Growth;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 60.0;
const COLOURS: [&str; 4] = ["#1f6feb", "#d1570b", "#1a7f37", "#8250df"];

/// A range of powers of ten.
struct Axis {
    from: i32,
    to: i32,
    start: f64,
    end: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Axis {
        let logs: Vec<f64> = values.filter(|v| *v > 0.0).map(f64::log10).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (from, to) = if logs.is_empty() {
            (0, 1)
        } else {
            (least.floor() as i32, most.ceil() as i32)
        };
        Axis {
            from,
            to: to.max(from + 1),
            start,
            end,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        self.start + share * (self.end - self.start)
    }

    fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        (self.from..=self.to).map(|power| (self.place(10f64.powi(power)), label(power)))
    }
}

fn label(power: i32) -> String {
    match power {
        ..0 => format!("{:.*}", power.unsigned_abs() as usize, 10f64.powi(power)),
        0..3 => format!("{}", 10i64.pow(power.unsigned_abs())),
        3..6 => format!("{}k", 10i64.pow((power - 3).unsigned_abs())),
        _ => format!("{}M", 10f64.powi(power - 6)),
    }
}

pub fn draw(growth: &Growth) -> String {
    let all = || growth.lines.iter().flat_map(|line| line.points.iter());
    let x = Axis::new(all().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::new(all().map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<title>{0}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"16\" font-weight=\"bold\">{0}: {1}</text>\n",
        growth.title, growth.y
    );
    axes(&mut svg, &x, &y, growth.x);
    for (index, line) in growth.lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points = line.points.iter().filter(|point| point.1 > 0.0);
        let places: Vec<(f64, f64)> = points
            .map(|point| (x.place(point.0), y.place(point.1)))
            .collect();
        let path: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        put(
            &mut svg,
            format_args!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                path.join(" ")
            ),
        );
        for (x, y) in &places {
            put(
                &mut svg,
                format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"),
            );
        }
        let at = LEFT + index as f64 * 250.0;
        put(
            &mut svg,
            format_args!(
                "<rect x=\"{at}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"45\">{}</text>",
                at + 18.0,
                line.name
            ),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn put(svg: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = writeln!(svg, "{line}");
}

fn axes(svg: &mut String, x: &Axis, y: &Axis, title: &str) {
    let (floor, end) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for (at, label) in x.ticks() {
        put(
            svg,
            format_args!(
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{floor}\" stroke=\"#d0d7de\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                floor + 20.0
            ),
        );
    }
    for (at, label) in y.ticks() {
        put(
            svg,
            format_args!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{end}\" y2=\"{at:.1}\" stroke=\"#d0d7de\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                at + 4.0
            ),
        );
    }
    put(
        svg,
        format_args!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{title}</text>",
            f64::midpoint(LEFT, end),
            HEIGHT - 14.0
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Line;

    #[test]
    fn points_lie_within_the_frame() {
        let growth = Growth {
            title: "T",
            x: "x",
            y: "y",
            lines: vec![Line {
                name: "l",
                points: vec![(10.0, 0.02), (100_000.0, 30.0)],
            }],
        };
        let svg = draw(&growth);
        assert!(
            svg.contains("cx=\"80.0\"") && svg.contains("cx=\"690.0\""),
            "{svg}"
        );
        assert!(svg.contains(">0.01<") && svg.contains(">100k<"), "{svg}");
    }
}
