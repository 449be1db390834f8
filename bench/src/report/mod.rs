//! The report: tables in Markdown, and plots as SVG files next to it.

mod plot;

use std::path::Path;

use anyhow::{Context, Result};

use crate::cluster::overhead::Overhead;
use crate::cluster::{Case, Floor, Growth};
use crate::measure::Figure;

#[derive(Default)]
pub struct Report {
    text: String,
    plots: Vec<(String, String)>,
}

/// Transitions or instances per second of the bare loops.
#[derive(Debug, Clone)]
pub struct FloorRow {
    pub name: &'static str,
    pub kind: Option<Floor>,
    pub unit: &'static str,
    pub figure: Figure,
    /// The rate at the end of the run, if it was measured again.
    pub again: Option<f64>,
}

impl Report {
    pub fn say(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.say(&format!("| {} |", head.join(" | ")));
        self.say(&format!("|{}", " --- |".repeat(head.len())));
        for row in rows {
            self.say(&format!("| {} |", row.join(" | ")));
        }
        self.say("");
    }

    pub fn floors(&mut self, floors: &[FloorRow]) {
        let rows = floors.iter().map(|row| {
            let figure = &row.figure;
            let again = row.again.map_or(String::new(), rounded);
            vec![
                row.name.to_owned(),
                figure.in_flight.to_string(),
                format!("{} {}", rounded(figure.rate), row.unit),
                again,
                number(figure.p50_ms, 2),
                number(figure.p99_ms, 2),
                figure.usage.cpu_text(),
            ]
        });
        let head = [
            "bare loop",
            "in flight",
            "by second",
            "at the end of the run",
            "p50 ms",
            "p99 ms",
            "CPU by message, µs",
        ];
        self.table(&head, &rows.collect::<Vec<_>>());
    }

    pub fn cases(&mut self, cases: &[Case], floors: &[FloorRow]) {
        let rows = cases.iter().map(|case| {
            let figure = &case.figure;
            let usage = &figure.usage;
            vec![
                case.name.clone(),
                figure.in_flight.to_string(),
                format!("{} {}", rounded(figure.rate), case.unit),
                number(figure.p50_ms, 2),
                number(figure.p99_ms, 2),
                ratio(case, floors),
                usage.cpu_text(),
                format!(
                    "{:.1} ({:.0} µs)",
                    usage.scripts,
                    usage.script_seconds * 1e6
                ),
                format!("{:.0} / {:.0}", usage.bytes_in, usage.bytes_out),
                case.note.clone(),
            ]
        });
        let head = [
            "what",
            "in flight",
            "by second",
            "p50 ms",
            "p99 ms",
            "of the floor",
            "CPU each, µs",
            "Redis scripts each",
            "Redis bytes in / out each",
            "",
        ];
        self.table(&head, &rows.collect::<Vec<_>>());
    }

    pub fn growth(&mut self, growth: &Growth) {
        self.say(&format!("### {}\n", growth.title));
        let head: Vec<&str> = std::iter::once(growth.x)
            .chain(growth.lines.iter().map(|line| line.name))
            .collect();
        let first = growth.lines.first();
        let rows = first.iter().flat_map(|line| &line.points).map(|(x, _)| {
            let mut row = vec![rounded(*x)];
            for line in &growth.lines {
                let found = line.points.iter().find(|point| point.0 == *x);
                row.push(found.map_or(String::new(), |point| number(point.1, 3)));
            }
            row
        });
        let rows: Vec<Vec<String>> = rows.collect();
        self.say(&format!("In {}.\n", growth.y));
        self.table(&head, &rows);
        let file = format!("{}.svg", growth.title.to_lowercase().replace(' ', "-"));
        self.say(&format!("![{}]({file})\n", growth.title));
        self.plots.push((file, plot::draw(growth)));
    }

    /// `base`: what they are compared with.
    pub fn overhead(&mut self, rows: &[Overhead], base: &str) {
        self.say(
            "Processor time is that of an instance, until its events are published. Each ratio is the median of those \
             within a round.\n",
        );
        let of_plain = |ratio: f64| match ratio.is_finite() {
            true => format!("{ratio:.2}"),
            false => String::new(),
        };
        let rows = rows.iter().map(|row| {
            let cpu = row.cpu().into_iter();
            let cpu = cpu.map(|(name, (micros, ratio))| {
                format!("{name} {} ({})", number(micros, 0), of_plain(ratio))
            });
            vec![
                format!("{}, {}", row.row, row.variant),
                row.in_flight.to_string(),
                rounded(row.rate()),
                of_plain(row.rate_ratio()),
                cpu.collect::<Vec<_>>().join(", "),
                format!(
                    "{:.1} ({})",
                    row.functions(),
                    of_plain(row.functions_ratio())
                ),
            ]
        });
        let of = format!("of {base}");
        let cpu = format!("CPU each, µs (of {base})");
        let functions = format!("Redis functions each (of {base})");
        let head = ["what", "in flight", "instances/s", &of, &cpu, &functions];
        self.table(&head, &rows.collect::<Vec<_>>());
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes the report, and its plots into the same folder.
    pub fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        std::fs::write(path, &self.text).with_context(|| format!("{}", path.display()))?;
        for (name, svg) in &self.plots {
            std::fs::write(folder.join(name), svg)?;
        }
        Ok(())
    }
}

/// The ratio to the floor at the same number of messages in flight, or at the nearest one that the floor has.
fn ratio(case: &Case, floors: &[FloorRow]) -> String {
    let Some(kind) = case.floor else {
        return String::new();
    };
    let rows = floors.iter().filter(|row| row.kind == Some(kind));
    let in_flight = case.figure.in_flight * case.width;
    let nearest = rows.min_by_key(|row| row.figure.in_flight.abs_diff(in_flight));
    nearest.map_or(String::new(), |row| {
        format!("{:.0} %", case.figure.rate / row.figure.rate * 100.0)
    })
}

fn number(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return String::new();
    }
    if value >= 100.0 {
        return rounded(value);
    }
    format!("{value:.digits$}")
}

/// With separators between thousands.
fn rounded(value: f64) -> String {
    if value.is_nan() {
        return String::new();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && text != "-" {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_people() {
        let texts = [0.0, 999.6, 1234567.0].map(rounded);
        assert_eq!(texts, ["0", "1,000", "1,234,567"]);
        assert_eq!(number(0.1234, 2), "0.12");
        assert_eq!(number(1234.5, 2), "1,234");
        assert_eq!(number(f64::NAN, 2), "");
    }
}
