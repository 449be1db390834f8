//! "Did you mean".

/// For very long words the distance is expensive to compute and not helpful.
const LENGTH_MAX: usize = 100;

/// Words with more differences than this are other words.
const DIFFERENCES_MAX: usize = 8;

/// The cost of one search, in steps: letters read and distances computed. A document may have thousands of misspelt
/// names and hundreds of candidates for each.
const STEPS_MAX: usize = 50_000;

/// The candidate that is most similar to `word`, if one is similar enough: ignoring case, at most a third of the
/// letters differ (a swap of neighbours counts as one difference). Of equally similar ones, the first is returned.
///
/// The search has a bounded cost, so candidates at the end of a long list may not be considered.
pub fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.is_empty() || word.len() > LENGTH_MAX {
        return None;
    }
    let letters = lower_case(word);
    let length = word.chars().count();
    let mut steps = STEPS_MAX;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates
        .into_iter()
        .filter(|c| *c != word && c.len() <= LENGTH_MAX)
    {
        let other = candidate.chars().count();
        let allowed = (length.max(other) / 3).min(DIFFERENCES_MAX);
        if length.abs_diff(other) <= allowed {
            let distance = distance(&letters, &lower_case(candidate), allowed, &mut steps);
            if let Some(distance) = distance
                && best.is_none_or(|(least, _)| distance < least)
            {
                best = Some((distance, candidate));
            }
        }
        steps = steps.saturating_sub(other);
        if steps == 0 {
            break;
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn lower_case(word: &str) -> Vec<char> {
    word.to_lowercase().chars().collect()
}

/// The number of letters to insert, remove, replace or swap with their neighbour, if it is at most `allowed`.
///
/// Only places near the diagonal can belong to so short a way, so only these are computed.
fn distance(a: &[char], b: &[char], allowed: usize, steps: &mut usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > allowed {
        return None;
    }
    let far = allowed + 1;
    let mut before_last = vec![far; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).map(|column| column.min(far)).collect();
    let mut row = vec![far; b.len() + 1];
    for (i, letter) in a.iter().enumerate() {
        let (from, to) = (i.saturating_sub(allowed), (i + far).min(b.len()));
        *steps = steps.saturating_sub(to.saturating_sub(from));
        row.fill(far);
        row[0] = (i + 1).min(far);
        let mut least = row[0];
        for j in from..to {
            let replaced = last[j] + usize::from(*letter != b[j]);
            let mut value = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == b[j] {
                value = value.min(before_last[j - 1] + 1);
            }
            row[j + 1] = value.min(far);
            least = least.min(row[j + 1]);
        }
        if least > allowed {
            return None;
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    Some(last[b.len()]).filter(|distance| *distance <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words() {
        let known = [
            "transition",
            "stateDataFilter",
            "end",
            "onErrors",
            "functionRef",
            "timeouts",
        ];
        for (word, best) in [
            ("transiton", Some("transition")),
            ("statedatafilter", Some("stateDataFilter")),
            ("onError", Some("onErrors")),
            ("functoinRef", Some("functionRef")),
            ("edn", Some("end")),
            ("timeout", Some("timeouts")),
            ("colour", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(did_you_mean(word, known), best, "{word}");
        }
        assert_eq!(did_you_mean("Stat", ["Star", "Stay"]), Some("Star"));
        assert_eq!(did_you_mean("same", ["same"]), None);
    }

    #[test]
    fn differences_are_counted() {
        let count = |a: &str, b: &str, allowed| {
            let mut steps = STEPS_MAX;
            distance(&lower_case(a), &lower_case(b), allowed, &mut steps)
        };
        for (a, b, differences) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abcd", 1),
            ("abcd", "bcd", 1),
            ("abcd", "axcd", 1),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("actionExecTimeout", "stateExecTimeout", 5),
            ("Grüße", "grusse", 3),
            ("abcdef", "uvwxyz", 6),
        ] {
            for allowed in 0..8 {
                let expected = Some(differences).filter(|found| *found <= allowed);
                assert_eq!(count(a, b, allowed), expected, "{a} {b} {allowed}");
                assert_eq!(count(b, a, allowed), expected, "{b} {a} {allowed}");
            }
        }
    }

    #[test]
    fn a_search_has_a_bounded_cost() {
        let start = "abcdefghi ".repeat(9);
        let names: Vec<String> = (1000..100_000).map(|n| format!("{start}{n:06}")).collect();
        let mut seen = 0;
        let candidates = names.iter().map(String::as_str).inspect(|_| seen += 1);
        let word = format!("{start}zzzz");
        assert_eq!(did_you_mean(&word, candidates), Some(names[0].as_str()));
        assert!(seen < 500, "{seen} candidates were compared");
        let short = names.iter().map(|_| "x");
        assert_eq!(did_you_mean("transition", short), None);
    }
}
