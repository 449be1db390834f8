//! Lists the differences between two values as lines of text.

use swirl_model::Data;
use swirl_presentation::text::cut;

/// The number of differences of one value that are shown; the rest is only counted.
const SHOWN_MAX: usize = 20;

/// Longer values are shortened, in characters.
const VALUE_CHARS_MAX: usize = 120;

/// The locations where `got` differs from `expected`, one line each, by JSON pointer. Empty if they are equal.
pub fn diff(expected: &Data, got: &Data) -> Vec<String> {
    let mut lines = Vec::new();
    walk("", expected, got, false, &mut lines);
    shorten(lines)
}

/// The parts of `expected` that `got` lacks: objects may have more members, and arrays more items.
pub fn missing(expected: &Data, got: &Data) -> Vec<String> {
    let mut lines = Vec::new();
    walk("", expected, got, true, &mut lines);
    shorten(lines)
}

/// Whether `whole` contains every key and value of `part`.
///
/// Each item of an array needs a separate item in the other array. The order doesn't matter.
pub fn contains(whole: &Data, part: &Data) -> bool {
    if let (Some(part), Some(_)) = (part.as_object(), whole.as_object()) {
        return part.iter().all(|(key, value)| {
            let key = Data(key.clone()).to_text();
            whole
                .get(&key)
                .is_some_and(|found| contains(&found, &Data(value.clone())))
        });
    }
    if let (Some(part), Some(whole)) = (part.as_array(), whole.as_array()) {
        let fits = |p: usize, w: usize| contains(&Data(whole[w].clone()), &Data(part[p].clone()));
        return assign(part.len(), whole.len(), fits)
            .iter()
            .all(Option::is_some);
    }
    whole == part
}

/// Assigns matching items of `right` to items of `left`, each at most once, so that as many as possible are assigned.
///
/// A greedy choice would not work: a pattern without arguments could take the only call that matches another pattern
/// with arguments.
pub fn assign(
    left: usize,
    right: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    fn place(
        thing: usize,
        table: &[Vec<usize>],
        seen: &mut [bool],
        owner: &mut [Option<usize>],
    ) -> bool {
        for &slot in &table[thing] {
            if std::mem::replace(&mut seen[slot], true) {
                continue;
            }
            if owner[slot].is_none_or(|other| place(other, table, seen, owner)) {
                owner[slot] = Some(thing);
                return true;
            }
        }
        false
    }
    let table: Vec<Vec<usize>> = (0..left)
        .map(|l| (0..right).filter(|&r| fits(l, r)).collect())
        .collect();
    let mut owner = vec![None; right];
    for thing in 0..left {
        place(thing, &table, &mut vec![false; right], &mut owner);
    }
    let mut given = vec![None; left];
    for (slot, thing) in owner.iter().enumerate() {
        if let Some(thing) = thing {
            given[*thing] = Some(slot);
        }
    }
    given
}

/// Shows two lists side by side, and marks rows that differ with `!`. Long lists begin shortly before the first
/// difference.
pub fn side_by_side(expected: &[String], got: &[String], same: &[bool]) -> Vec<String> {
    const CELL_MAX: usize = 60;
    const CONTEXT: usize = 3;
    let rows = expected.len().max(got.len());
    let differs = (0..rows).find(|row| !same.get(*row).copied().unwrap_or(false));
    let last = rows.saturating_sub(SHOWN_MAX);
    let from = differs.unwrap_or(0).saturating_sub(CONTEXT).min(last);
    let to = rows.min(from + SHOWN_MAX);
    let left: Vec<String> = expected.iter().map(|text| cut(text, CELL_MAX)).collect();
    let width = left
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0)
        .max("expected".len());
    let mut lines = vec![format!("  {:width$}   got", "expected")];
    if from > 0 {
        lines.push(format!("  {from} before"));
    }
    for row in from..to {
        let mark = if same.get(row).copied().unwrap_or(false) {
            ' '
        } else {
            '!'
        };
        let left = left.get(row).map_or("-", String::as_str);
        let right = got
            .get(row)
            .map_or("-".to_owned(), |text| cut(text, CELL_MAX));
        lines.push(format!("{mark} {left:width$}   {right}"));
    }
    if to < rows {
        lines.push(format!("  and {} more", rows - to));
    }
    lines
}

fn show(value: &Data) -> String {
    cut(&value.to_string(), VALUE_CHARS_MAX)
}

pub fn shorten(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > SHOWN_MAX {
        let more = lines.len() - SHOWN_MAX;
        lines.truncate(SHOWN_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn walk(at: &str, expected: &Data, got: &Data, subset: bool, lines: &mut Vec<String>) {
    let place = if at.is_empty() { "the whole" } else { at };
    if let (Some(left), Some(right)) = (expected.as_object(), got.as_object()) {
        for (key, value) in left.iter() {
            let name = Data(key.clone()).to_text();
            let at = format!("{at}/{}", escape(&name));
            match got.get(&name) {
                Some(found) => walk(&at, &Data(value.clone()), &found, subset, lines),
                None => lines.push(format!(
                    "{at}: expected {}, is missing",
                    show(&Data(value.clone()))
                )),
            }
        }
        if !subset {
            for (key, value) in right.iter() {
                let name = Data(key.clone()).to_text();
                if expected.get(&name).is_none() {
                    let value = show(&Data(value.clone()));
                    lines.push(format!("{at}/{}: not expected, got {value}", escape(&name)));
                }
            }
        }
        return;
    }
    if let (Some(left), Some(right)) = (expected.as_array(), got.as_array()) {
        if subset {
            let fits =
                |l: usize, r: usize| contains(&Data(right[r].clone()), &Data(left[l].clone()));
            for (index, slot) in assign(left.len(), right.len(), fits).iter().enumerate() {
                if slot.is_none() {
                    let item = show(&Data(left[index].clone()));
                    lines.push(format!(
                        "{place}: no item (of its own) that contains {item}"
                    ));
                }
            }
            return;
        }
        for index in 0..left.len().max(right.len()) {
            let at = format!("{at}/{index}");
            match (left.get(index), right.get(index)) {
                (Some(l), Some(r)) => walk(&at, &Data(l.clone()), &Data(r.clone()), false, lines),
                (Some(l), None) => {
                    lines.push(format!(
                        "{at}: expected {}, is missing",
                        show(&Data(l.clone()))
                    ));
                }
                (None, Some(r)) => {
                    lines.push(format!(
                        "{at}: not expected, got {}",
                        show(&Data(r.clone()))
                    ));
                }
                (None, None) => {}
            }
        }
        return;
    }
    if expected != got {
        lines.push(format!(
            "{place}: expected {}, got {}",
            show(expected),
            show(got)
        ));
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::data;

    #[test]
    fn long_lists_are_shortened() {
        let texts = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let mut same = vec![true; 2_000];
        let lines = side_by_side(&texts(1), &texts(2_000), &same[..1]);
        assert_eq!(lines.len(), 22, "{lines:?}");
        assert_eq!(lines[21], "  and 1980 more");
        same[1_000] = false;
        let lines = side_by_side(&texts(2_000), &texts(2_000), &same);
        assert_eq!(lines[1], "  997 before");
        assert!(lines[5].starts_with("! 1000 "), "{lines:?}");
        assert_eq!(lines[22], "  and 983 more");
        same.fill(true);
        let lines = side_by_side(&texts(2_000), &texts(2_001), &same);
        assert_eq!(lines[1], "  1981 before");
        assert_eq!(lines.len(), 22, "{lines:?}");
    }

    #[test]
    fn differences_are_listed_by_location() {
        let lines = diff(
            &data!({"a": 1, "b": {"c/d": [1, 2, 3]}, "gone": true, "same": [1.0]}),
            &data!({"same": [1], "b": {"c/d": [1, 5]}, "a": "1", "new": null}),
        );
        insta::assert_snapshot!(lines.join("\n"), @r#"
        /a: expected 1, got "1"
        /b/c~1d/1: expected 2, got 5
        /b/c~1d/2: expected 3, is missing
        /gone: expected true, is missing
        /new: not expected, got null
        "#);
        assert_eq!(
            diff(&data!(1), &data!({})),
            ["the whole: expected 1, got {}"]
        );
    }

    #[test]
    fn many_differences_are_counted() {
        let expected = Data::array((0..30).map(Data::int).collect());
        let lines = diff(&expected, &data!([]));
        assert_eq!((lines.len(), lines[20].as_str()), (21, "and 10 more"));
    }

    #[test]
    fn subsets() {
        let whole = data!({"a": {"b": 1, "c": 2}, "l": [{"x": 1, "y": 2}, {"x": 1}, 3]});
        for part in [
            data!({}),
            data!({"a": {"c": 2.0}}),
            data!({"l": [3, {"x": 1}]}),
            // The general pattern must not take the only match of the special one.
            data!({"l": [{"x": 1}, {"x": 1, "y": 2}]}),
        ] {
            assert!(contains(&whole, &part), "{part}");
            assert_eq!(missing(&part, &whole), Vec::<String>::new(), "{part}");
        }
        for part in [
            data!({"a": 1}),
            data!({"l": [3, 3]}),
            data!({"z": null}),
            data!([]),
        ] {
            assert!(!contains(&whole, &part), "{part}");
            assert!(!missing(&part, &whole).is_empty(), "{part}");
        }
    }

    #[test]
    fn assignment_is_not_greedy() {
        assert_eq!(assign(2, 2, |l, r| l == 0 || r == 0), [Some(1), Some(0)]);
        assert_eq!(assign(3, 2, |_, _| true).iter().flatten().count(), 2);
    }
}
