//! The lines in which two texts differ, with some around them.

use std::time::Instant;

use similar::{ChangeTag, TextDiff};

/// How many equal lines are shown around those that differ.
const AROUND: usize = 3;
/// The limit on the length of a line.
const LINE_CHARS_MAX: usize = 1_000;

/// A line of one text, or of both.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its numbers in both texts, from 1 on.
    pub old: Option<usize>,
    pub new: Option<usize>,
    /// The class, the sign and the word of what happened to it.
    pub class: &'static str,
    pub sign: &'static str,
    pub word: &'static str,
    pub text: String,
}

/// Groups of neighbouring lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub groups: Vec<Vec<Line>>,
    pub added: usize,
    pub removed: usize,
    /// There are more lines than are shown.
    pub is_cut: bool,
}

/// After the deadline the texts are compared roughly: more lines than necessary count as changed. `left`: the number of
/// lines that can still be shown.
pub fn difference(old: &str, new: &str, deadline: Instant, left: &mut usize) -> Difference {
    let compared = TextDiff::configure()
        .deadline(deadline)
        .diff_lines(old, new);
    let mut found = Difference::default();
    for group in compared.grouped_ops(AROUND) {
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|part| compared.iter_changes(part)) {
            let (class, sign, word) = match change.tag() {
                ChangeTag::Equal => ("", "", ""),
                ChangeTag::Delete => ("removed", "−", "removed"),
                ChangeTag::Insert => ("added", "+", "added"),
            };
            match change.tag() {
                ChangeTag::Equal => {}
                ChangeTag::Delete => found.removed += 1,
                ChangeTag::Insert => found.added += 1,
            }
            if *left == 0 {
                found.is_cut = true;
                continue;
            }
            *left -= 1;
            lines.push(Line {
                old: change.old_index().map(|index| index + 1),
                new: change.new_index().map(|index| index + 1),
                class,
                sign,
                word,
                text: cut(change.value()),
            });
        }
        if !lines.is_empty() {
            found.groups.push(lines);
        }
    }
    found
}

fn cut(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    match line.char_indices().nth(LINE_CHARS_MAX) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn compared(old: &str, new: &str) -> Difference {
        let deadline = Instant::now() + Duration::from_secs(10);
        difference(old, new, deadline, &mut 2_000)
    }

    #[test]
    fn lines_have_their_numbers_and_some_around_them() {
        let old: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        let new = old.replace("line 10\n", "line ten\nmore\n");
        let found = compared(&old, &new);
        assert_eq!((found.added, found.removed, found.is_cut), (2, 1, false));
        let [group] = &found.groups[..] else {
            panic!("{:?}", found.groups)
        };
        let shown: Vec<String> = group
            .iter()
            .map(|line| {
                let number =
                    |number: Option<usize>| number.map_or("-".to_owned(), |n| n.to_string());
                format!(
                    "{} {} {}{}",
                    number(line.old),
                    number(line.new),
                    line.sign,
                    line.text
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "7 7 line 7",
                "8 8 line 8",
                "9 9 line 9",
                "10 - −line 10",
                "- 10 +line ten",
                "- 11 +more",
                "11 12 line 11",
                "12 13 line 12",
                "13 14 line 13",
            ]
        );
        assert_eq!(compared(&old, &old), Difference::default());
    }

    #[test]
    fn a_difference_is_bounded() {
        let lines = |word: &str| -> String {
            let lines = (0..40_000).map(|line| format!("{word} {}\n", line * 7 % 1_013));
            lines.collect()
        };
        let begun = Instant::now();
        let soon = begun + Duration::from_millis(50);
        let found = difference(&lines("old"), &lines("new"), soon, &mut 2_000);
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!((found.added, found.removed), (40_000, 40_000));
        assert!(found.is_cut);
        assert_eq!(found.groups.iter().map(Vec::len).sum::<usize>(), 2_000);
        let long = compared("", &"é".repeat(5_000));
        assert_eq!(long.groups[0][0].text.chars().count(), LINE_CHARS_MAX + 1);
    }
}
