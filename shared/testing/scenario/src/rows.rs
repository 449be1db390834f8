//! Compares lists of calls and events with expected rows.

use swirl_model::time::IsoDuration;
use swirl_model::{CloudEvent, Data};

use super::differ::{self, assign, side_by_side};

/// An expected row for a list of observed items.
pub(super) trait Row {
    type Seen;
    fn fits(&self, seen: &Self::Seen) -> bool;
    fn text(&self) -> String;
    fn seen_text(seen: &Self::Seen) -> String;
    /// The differences between the two, if they are about the same item.
    fn details(&self, seen: &Self::Seen) -> Vec<String>;
}

/// The differences between the lists, or `None` if there are none.
pub(super) fn list<R: Row>(wanted: &[R], got: &[R::Seen], ordered: bool) -> Option<Vec<String>> {
    if ordered {
        let same: Vec<bool> = wanted
            .iter()
            .zip(got)
            .map(|(row, seen)| row.fits(seen))
            .collect();
        if wanted.len() == got.len() && same.iter().all(|same| *same) {
            return None;
        }
        let left: Vec<String> = wanted.iter().map(Row::text).collect();
        let right: Vec<String> = got.iter().map(R::seen_text).collect();
        let mut lines = side_by_side(&left, &right, &same);
        let mut details = Vec::new();
        for (index, (row, seen)) in wanted.iter().zip(got).enumerate() {
            if !row.fits(seen) {
                let all = row.details(seen).into_iter();
                details.extend(all.map(|line| format!("  [{index}] {line}")));
            }
        }
        lines.extend(differ::shorten(details));
        return Some(lines);
    }
    let given = assign(wanted.len(), got.len(), |row, seen| {
        wanted[row].fits(&got[seen])
    });
    if wanted.len() == got.len() && given.iter().all(Option::is_some) {
        return None;
    }
    let mut lines = Vec::new();
    let free: Vec<usize> = (0..got.len())
        .filter(|index| !given.contains(&Some(*index)))
        .collect();
    for (row, slot) in wanted.iter().zip(&given) {
        if slot.is_none() {
            lines.push(format!("expected, is missing: {}", row.text()));
            lines.extend(nearest(row, got, &free));
        }
    }
    for index in free {
        lines.push(format!("not expected, got: {}", R::seen_text(&got[index])));
    }
    Some(differ::shorten(lines))
}

/// Describes how the most similar unmatched item differs from this row.
fn nearest<R: Row>(row: &R, got: &[R::Seen], free: &[usize]) -> Vec<String> {
    let details = free.iter().map(|index| row.details(&got[*index]));
    let about_the_same = details.filter(|lines| !lines.is_empty());
    let nearest = about_the_same.min_by_key(Vec::len).unwrap_or_default();
    nearest
        .into_iter()
        .map(|line| format!("  the nearest that came: {line}"))
        .collect()
}

/// Attributes of a CloudEvent: names are compared without regard to case and values as text, `data` exactly.
impl Row for Data {
    type Seen = CloudEvent;

    fn fits(&self, seen: &CloudEvent) -> bool {
        self.as_object().is_some_and(|wanted| {
            wanted.iter().all(|(name, value)| {
                attribute_fits(&Data(name.clone()).to_text(), &Data(value.clone()), seen)
            })
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn seen_text(seen: &CloudEvent) -> String {
        let mut text = format!("{} from {}", seen.kind, seen.source);
        if let Some(data) = &seen.data {
            text.push_str(&format!(" {data}"));
        }
        text
    }

    fn details(&self, seen: &CloudEvent) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, value) in self
            .as_object()
            .into_iter()
            .flat_map(|wanted| wanted.iter())
        {
            let (name, value) = (Data(name.clone()).to_text(), Data(value.clone()));
            if attribute_fits(&name, &value, seen) {
                continue;
            }
            match (name.as_str(), &seen.data) {
                ("data", Some(data)) => {
                    lines.extend(
                        differ::diff(&value, data)
                            .iter()
                            .map(|line| format!("data: {line}")),
                    );
                }
                _ => {
                    let got = seen.attribute(&name);
                    let got = got.map_or("is missing".to_owned(), |text| format!("got '{text}'"));
                    lines.push(format!("{name}: expected {value}, {got}"));
                }
            }
        }
        lines
    }
}

fn attribute_fits(name: &str, wanted: &Data, event: &CloudEvent) -> bool {
    match (name, &event.data) {
        ("data", Some(data)) => wanted == data,
        ("data", None) => wanted.is_null(),
        ("specversion", _) => wanted.to_text() == event.specversion,
        _ => event
            .attribute(name)
            .is_some_and(|text| text == wanted.to_text()),
    }
}

/// Virtual milliseconds as an ISO 8601 duration.
pub fn millis(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    format!(
        "{sign}{}",
        IsoDuration {
            months: 0,
            millis: ms.unsigned_abs()
        }
    )
}
