//! Schedules in words, where they are simple enough for that.

use swirl_api::schedules::Kind;

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// How many times of a day are listed.
const TIMES_MAX: usize = 4;

/// When a schedule starts instances; empty if that takes more than a sentence.
pub fn schedule(kind: &Kind, text: &str) -> String {
    let words = match kind {
        Kind::Cron => cron(text),
        Kind::Interval => interval(text),
        Kind::After => duration(text).map(|after| format!("{after} after each end")),
        _ => None,
    };
    words.unwrap_or_default()
}

fn cron(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let (fields, sunday) = match fields.as_slice() {
        all @ [_, _, _, _, _] => (all, 0),
        ["0", all @ ..] if all.len() == 5 => (all, 1),
        ["0", all @ .., "*"] if all.len() == 5 => (all, 1),
        _ => return None,
    };
    let [minute, hour, day, month, weekday] = fields else {
        return None;
    };
    let (time, is_at) = time(minute, hour)?;
    let days = match (is_free(day), is_free(weekday)) {
        (true, true) => None,
        (true, false) => Some(weekdays(weekday, sunday)?),
        (false, true) => Some(days(day)?),
        // Days that fit either: nobody expects that.
        (false, false) => return None,
    };
    let months = match is_free(month) {
        true => String::new(),
        false => format!(" in {}", joined(&named(month, &MONTHS, 1)?)),
    };
    Some(match (days, is_at) {
        (None, true) => format!("every day{months} {time}"),
        (None, false) => format!("{time}{months}"),
        (Some(days), true) => format!("{days}{months} {time}"),
        (Some(days), false) => format!("{time} {days}{months}"),
    })
}

fn is_free(field: &str) -> bool {
    matches!(field, "*" | "?")
}

/// The times of a day, and whether these are single ones.
fn time(minute: &str, hour: &str) -> Option<(String, bool)> {
    // Other steps begin anew with each hour or day, so they are no intervals.
    let step = |field: &str, whole: u32| {
        let every = field.strip_prefix("*/")?.parse::<u32>().ok()?;
        (every > 0 && whole.is_multiple_of(every)).then_some(every)
    };
    let at = |minute: u32| match minute {
        0 => "on the hour".to_owned(),
        minute => format!("at minute {minute}"),
    };
    if let Some(every) = step(minute, 60).or((minute == "*").then_some(1)) {
        let every = unit(every, "minute");
        let hours = match hour.split_once('-') {
            _ if is_free(hour) => String::new(),
            Some((from, to)) => {
                let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
                format!(" from {from:02}:00 to {to:02}:59")
            }
            None => return None,
        };
        return Some((format!("every {every}{hours}"), false));
    }
    let minute: u32 = minute.parse().ok()?;
    if let Some(every) = step(hour, 24).or(is_free(hour).then_some(1)) {
        let every = unit(every, "hour");
        return Some((format!("every {every}, {}", at(minute)), false));
    }
    let hours: Option<Vec<u32>> = hour.split(',').map(|hour| hour.parse().ok()).collect();
    let hours = hours.filter(|hours| hours.len() <= TIMES_MAX)?;
    let times: Vec<String> = hours
        .iter()
        .map(|hour| format!("{hour:02}:{minute:02}"))
        .collect();
    Some((format!("at {}", joined(&times)), true))
}

fn weekdays(field: &str, sunday: u32) -> Option<String> {
    if let Some((from, to)) = field.split_once('-').filter(|_| !field.contains(',')) {
        let (from, to) = (
            named(from, &WEEKDAYS, sunday)?,
            named(to, &WEEKDAYS, sunday)?,
        );
        return Some(format!("from {} to {}", joined(&from), joined(&to)));
    }
    let days = named(field, &WEEKDAYS, sunday)?;
    let days: Vec<String> = days.iter().map(|day| format!("{day}s")).collect();
    Some(format!("on {}", joined(&days)))
}

fn days(field: &str) -> Option<String> {
    if field == "L" {
        return Some("on the last day of the month".to_owned());
    }
    let days: Option<Vec<u32>> = field.split(',').map(|day| day.parse().ok()).collect();
    let days: Vec<String> = days?.iter().map(u32::to_string).collect();
    let noun = if days.len() == 1 { "day" } else { "days" };
    Some(format!("on {noun} {} of the month", joined(&days)))
}

/// The names of a list of numbers or abbreviations. `first`: the number of the first name.
fn named(field: &str, names: &[&str], first: u32) -> Option<Vec<String>> {
    let one = |text: &str| {
        let by_number = text.parse::<usize>().ok().and_then(|number| {
            let place = number.checked_sub(usize::try_from(first).ok()?)?;
            // Of weekdays that begin with 0, 7 is the first one again.
            let place = if first == 0 {
                place % names.len()
            } else {
                place
            };
            names.get(place)
        });
        let by_name = || {
            let mut names = names.iter();
            let text = text.to_ascii_lowercase();
            names.find(|name| text.len() == 3 && name.to_ascii_lowercase().starts_with(&text))
        };
        by_number.or_else(by_name).map(|name| (*name).to_owned())
    };
    field.split(',').map(one).collect()
}

fn interval(text: &str) -> Option<String> {
    let rest = text.strip_prefix('R')?;
    let (times, rest) = rest.split_once('/')?;
    let (from, every) = match rest.split_once('/') {
        Some((from, every)) if !from.starts_with('P') && every.starts_with('P') => {
            (format!(", from {from}"), every)
        }
        Some(_) => return None,
        None => (String::new(), rest),
    };
    let every = duration(every)?;
    let every = match every.strip_prefix("1 ") {
        Some(unit) if !unit.contains(' ') => unit.to_owned(),
        _ => every,
    };
    let times = match times {
        "" => String::new(),
        "1" => ", once".to_owned(),
        times => format!(", {} times", times.parse::<u32>().ok()?),
    };
    Some(format!("every {every}{from}{times}"))
}

/// An ISO 8601 duration.
fn duration(text: &str) -> Option<String> {
    let (days, times) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, times)) => (days, times),
        None => (text.strip_prefix('P')?, ""),
    };
    let mut parts = Vec::new();
    for (text, units) in [
        (
            days,
            [('Y', "year"), ('M', "month"), ('W', "week"), ('D', "day")].as_slice(),
        ),
        (
            times,
            [('H', "hour"), ('M', "minute"), ('S', "second")].as_slice(),
        ),
    ] {
        let mut number = String::new();
        for char in text.chars() {
            if char.is_ascii_digit() {
                number.push(char);
                continue;
            }
            let (_, name) = units.iter().find(|(sign, _)| *sign == char)?;
            let count: u32 = std::mem::take(&mut number).parse().ok()?;
            parts.push(unit_with_one(count, name));
        }
        if !number.is_empty() {
            return None;
        }
    }
    Some(parts.join(" ")).filter(|text| !text.is_empty())
}

fn unit(count: u32, name: &str) -> String {
    match count {
        1 => name.to_owned(),
        count => format!("{count} {name}s"),
    }
}

fn unit_with_one(count: u32, name: &str) -> String {
    match count {
        1 => format!("1 {name}"),
        count => format!("{count} {name}s"),
    }
}

fn joined(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cron_expressions_in_words() {
        for (text, words) in [
            ("* * * * *", "every minute"),
            ("*/5 * * * *", "every 5 minutes"),
            ("*/45 * * * *", ""),
            ("0 */5 * * *", ""),
            ("0 8 * * 1,3-5", ""),
            ("0 * * * *", "every hour, on the hour"),
            ("15 */2 * * *", "every 2 hours, at minute 15"),
            ("0 9 * * *", "every day at 09:00"),
            (
                "30 9,17 * * 1-5",
                "from Monday to Friday at 09:30 and 17:30",
            ),
            ("0 9 * * 0,6", "on Sundays and Saturdays at 09:00"),
            ("0 9 * * 7", "on Sundays at 09:00"),
            ("0 9 * * mon", "on Mondays at 09:00"),
            ("0 0 1 * *", "on day 1 of the month at 00:00"),
            (
                "0 0 1,15 1,7 *",
                "on days 1 and 15 of the month in January and July at 00:00",
            ),
            ("0 0 L * ?", "on the last day of the month at 00:00"),
            (
                "*/10 8-17 * * 1-5",
                "every 10 minutes from 08:00 to 17:59 from Monday to Friday",
            ),
            ("0 0 12 ? * 2", "on Mondays at 12:00"),
            ("0 0 12 * * ? *", "every day at 12:00"),
            // More than a sentence.
            ("0 9 1 * 1", ""),
            ("30 0 12 * * ?", ""),
            ("0 9 * * 5L", ""),
            ("nonsense", ""),
        ] {
            assert_eq!(schedule(&Kind::Cron, text), words, "{text}");
        }
    }

    #[test]
    fn intervals_in_words() {
        for (text, words) in [
            ("R/PT1H", "every hour"),
            ("R/PT1H30M", "every 1 hour 30 minutes"),
            ("R4/PT10M", "every 10 minutes, 4 times"),
            (
                "R/2024-01-01T00:00:00Z/P1D",
                "every day, from 2024-01-01T00:00:00Z",
            ),
            ("R/PT1H/2024-01-01T00:00:00Z", ""),
            ("PT1H", ""),
        ] {
            assert_eq!(schedule(&Kind::Interval, text), words, "{text}");
        }
        assert_eq!(schedule(&Kind::After, "PT1H"), "1 hour after each end");
        assert_eq!(schedule(&Kind::Window, "R/PT1H"), "");
    }
}
