//! "Did you mean".

/// The candidate that is most similar to `word`, if one is similar enough: ignoring case, at most a third of the
/// letters differ (a swap of neighbours counts as one difference). Of equally similar ones, the first is returned.
pub fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // For very long words the distance is expensive to compute and not helpful.
    const LENGTH_MAX: usize = 100;
    if word.is_empty() || word.len() > LENGTH_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates
        .into_iter()
        .filter(|c| *c != word && c.len() <= LENGTH_MAX)
    {
        let distance = strsim::osa_distance(&lower, &candidate.to_lowercase());
        let length = word.chars().count().max(candidate.chars().count());
        if distance * 3 <= length && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
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
}
