//! Compares cron expressions with the crate `cron`, for the forms that both interpret in the same way: six fields, UTC,
//! and one of the two day fields left open. (With both, that crate wants a day that fits both; crontab(5) and this
//! project take either. It knows no `L`, `W` and `#`.)

#![allow(clippy::unwrap_used, reason = "a test")]

use std::str::FromStr;

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use proptest::sample::subsequence;
use swirl_model::schedule::{Cron, Zone};
use swirl_model::time::Timestamp;

/// A value, a range, or steps of either, within the bounds of a field.
fn item(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = min..=max;
    let range = (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let step = 1..=(max - min).max(2) / 2;
    prop_oneof![
        4 => value.clone().prop_map(|value| value.to_string()),
        2 => range.clone().prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (range, step.clone()).prop_map(|((from, to), step)| format!("{from}-{to}/{step}")),
        1 => (value, step.clone()).prop_map(|(from, step)| format!("{from}/{step}")),
        1 => step.prop_map(|step| format!("*/{step}")),
    ]
}

fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just("*".to_owned()),
        3 => prop::collection::vec(item(min, max), 1..4).prop_map(|items| items.join(",")),
    ]
}

fn names(all: &'static [&'static str]) -> impl Strategy<Value = String> {
    subsequence(all, 1..=3).prop_map(|names| names.join(","))
}

fn expression() -> impl Strategy<Value = String> {
    const MONTHS: [&str; 12] = [
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ];
    const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let months = prop_oneof![3 => field(1, 12), 1 => names(&MONTHS)];
    let weekdays = prop_oneof![3 => field(1, 7), 1 => names(&WEEKDAYS)];
    let days = prop_oneof![
        field(1, 31).prop_map(|days| (days, "?".to_owned())),
        weekdays.prop_map(|weekdays| ("?".to_owned(), weekdays)),
        Just(("*".to_owned(), "*".to_owned())),
    ];
    (field(0, 59), field(0, 59), field(0, 23), days, months).prop_map(
        |(second, minute, hour, (day, weekday), month)| {
            format!("{second} {minute} {hour} {day} {month} {weekday}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_same_times(expression in expression(), start_s in 946_684_800_i64..4_102_444_800) {
        let oracle = cron::Schedule::from_str(&expression).unwrap();
        let start = DateTime::<Utc>::from_timestamp(start_s, 0).unwrap();
        // It knows no year after 2100.
        let expected: Vec<i64> = oracle
            .after(&start)
            .take(5)
            .map(|at| at.timestamp_millis())
            .collect();
        let ours = Cron::parse(&expression).unwrap();
        let mut at = Timestamp(start_s * 1_000);
        for expected in expected {
            at = ours.next_after(at, &Zone::utc()).unwrap();
            prop_assert_eq!(at, Timestamp(expected), "{} after {}", expression, start);
        }
    }
}
