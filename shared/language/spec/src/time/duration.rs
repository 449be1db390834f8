//! Durations in documents.

pub use swirl_model::time::{DurationError, IsoDuration};

/// An ISO 8601 duration, such as `PT15M` or `P1Y2M10DT2H30M`.
pub fn parse(text: &str) -> Result<IsoDuration, DurationError> {
    IsoDuration::parse(text)
}

/// The duration that may be meant by a text that isn't one: `15m`, `pt15m`, `2 hours`, `30`.
pub fn suggestion(text: &str) -> Option<String> {
    let text = text.trim();
    let upper = text.to_ascii_uppercase();
    if IsoDuration::parse(&upper).is_ok() {
        return Some(upper);
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    if number.is_empty() || number.len() > 9 {
        return None;
    }
    match unit.to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => Some(format!("PT{number}S")),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(format!("PT{number}M")),
        "h" | "hour" | "hours" => Some(format!("PT{number}H")),
        "d" | "day" | "days" => Some(format!("P{number}D")),
        "w" | "week" | "weeks" => Some(format!("P{number}W")),
        "month" | "months" => Some(format!("P{number}M")),
        "y" | "year" | "years" => Some(format!("P{number}Y")),
        "ms" => number
            .parse()
            .ok()
            .map(|ms| IsoDuration::from_millis(ms).to_string()),
        _ => None,
    }
}

/// `PT30D` and `PT1W`: days and weeks after the 'T'. Returns the correct text and its value.
pub fn misplaced(text: &str) -> Option<(String, IsoDuration)> {
    let rest = text.trim().strip_prefix("PT")?;
    let at = rest.rfind(['D', 'W'])? + 1;
    let (days, times) = rest.split_at(at);
    let good = |c: char| c.is_ascii_digit() || matches!(c, 'D' | 'W' | '.');
    if !days.chars().all(good) {
        return None;
    }
    let meant = match times {
        "" => format!("P{days}"),
        times => format!("P{days}T{times}"),
    };
    IsoDuration::parse(&meant)
        .ok()
        .map(|duration| (meant, duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_behind_the_t() {
        for (text, meant) in [
            ("PT30D", Some("P30D")),
            ("PT1W", Some("P1W")),
            ("PT1D2H", Some("P1DT2H")),
            ("PT2H", None),
            ("P1D", None),
            ("PT1Y2D", None),
        ] {
            let found = misplaced(text).map(|(meant, _)| meant);
            assert_eq!(found.as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn suggestions_are_durations() {
        for (text, suggested) in [
            ("15m", Some("PT15M")),
            ("pt15m", Some("PT15M")),
            ("2 hours", Some("PT2H")),
            ("30", Some("PT30S")),
            ("1500ms", Some("PT1.5S")),
            ("3 months", Some("P3M")),
            ("soon", None),
            ("", None),
            ("5 \u{e9}", None),
        ] {
            assert_eq!(suggestion(text).as_deref(), suggested, "{text}");
            assert!(suggested.is_none_or(|text| parse(text).is_ok()), "{text}");
        }
    }
}
