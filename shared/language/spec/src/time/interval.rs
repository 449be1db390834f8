//! Intervals in documents (docs/language.md#decision-42).

pub use swirl_model::schedule::{Interval, IntervalError};

/// An ISO 8601 interval. Local times in it are in the time zone with that name. `repeats` in the result says whether it
/// was written with an `R`.
pub fn parse(text: &str, zone: &str) -> Result<Interval, IntervalError> {
    Interval::parse(text, zone)
}

/// A retry interval: `R5/PT15M` means five times, a quarter of an hour apart (docs/language.md#decision-22). A plain
/// duration has no count.
pub fn parse_retry(
    text: &str,
) -> Result<(Option<u32>, super::duration::IsoDuration), IntervalError> {
    let length = text.split_once('/').map_or(text, |(_, rest)| rest);
    let interval = Interval::parse(text, "UTC")?;
    let duration = super::duration::parse(length)
        .map_err(|error| IntervalError::Duration(length.chars().take(60).collect(), error))?;
    Ok((interval.count, duration))
}

/// An interval whose durations have days or weeks after the 'T' (`R/PT1D`), as it is meant.
pub fn misplaced(text: &str) -> Option<String> {
    let mut is_other = false;
    let parts = text.split('/').map(|part| {
        let meant = match super::duration::parse(part.trim()) {
            Ok(_) => None,
            Err(_) => super::duration::misplaced(part),
        };
        is_other |= meant.is_some();
        meant.map_or_else(|| part.to_owned(), |(meant, _)| meant)
    });
    let meant = parts.collect::<Vec<_>>().join("/");
    is_other.then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_behind_the_t_in_intervals() {
        for (text, meant) in [
            ("R/PT1D", Some("R/P1D")),
            ("R5/PT2W", Some("R5/P2W")),
            (
                "2024-01-01T00:00:00Z/PT30D",
                Some("2024-01-01T00:00:00Z/P30D"),
            ),
            ("PT1D", Some("P1D")),
            ("R/PT1H", None),
            ("R/P1D", None),
            ("R/PT1X", None),
        ] {
            assert_eq!(misplaced(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn retry_intervals() {
        for (text, count, duration) in [
            ("R5/PT15M", Some(5), "PT15M"),
            ("PT1M", None, "PT1M"),
            ("R/PT1M", None, "PT1M"),
        ] {
            let (found, each) = parse_retry(text).unwrap();
            assert_eq!(
                (found, each.to_string().as_str()),
                (count, duration),
                "{text}"
            );
        }
        for text in [
            "",
            "5/PT1M",
            "R5",
            "R5/PT1M/PT1M",
            "R5/2024-01-01T00:00:00Z/PT1M",
        ] {
            assert!(parse_retry(text).is_err(), "{text}");
        }
    }

    #[test]
    fn repeating_or_not() {
        assert!(parse("R/PT2H", "UTC").unwrap().repeats);
        assert!(!parse("PT2H", "UTC").unwrap().repeats);
        assert!(parse("R/PT2H", "Nowhere").is_err());
    }
}
