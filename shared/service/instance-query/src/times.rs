//! Instants as people write them: `2024-01-31T09:00:00Z`, `2024-01-31`, `now`, `-1h`.

use swirl_model::time::Timestamp;

/// `now` and the instants counted from it are resolved at once, so a query means the same moment each time.
pub(crate) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    if text == "now" {
        return Some(now);
    }
    if let Some(ms) = relative(text) {
        return Some(Timestamp(now.0.checked_add(ms)?));
    }
    let is_date = text.len() == 10 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
    let found = match is_date {
        true => Timestamp::parse(&format!("{text}T00:00:00Z")),
        false => Timestamp::parse(text),
    };
    found.ok()
}

/// `-90s`, `-5m`, `-1h`, `-7d`, `-2w`, or with a plus, in milliseconds.
fn relative(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("-", rest) => (-1, rest),
        ("+", rest) => (1, rest),
        _ => return None,
    };
    let unit = rest.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let number = rest.strip_suffix(unit)?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = number.parse().ok()?;
    number.checked_mul(seconds * 1000 * sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants() {
        let now = Timestamp(1_000_000_000);
        let parse = |text| super::parse(text, now).map(|found| found.0);
        assert_eq!(parse("now"), Some(1_000_000_000));
        assert_eq!(parse("-1h"), Some(996_400_000));
        assert_eq!(parse("+90s"), Some(1_000_090_000));
        assert_eq!(parse("1970-01-02"), Some(86_400_000));
        assert_eq!(parse("1970-01-01T00:00:01Z"), Some(1000));
        for wrong in [
            "",
            "-",
            "-h",
            "-1y",
            "1h",
            "--1h",
            "-99999999999999999999d",
            "é",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
