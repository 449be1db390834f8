//! Dates as in jq 1.6, where the library differs: parts that overflow, times without a date, and two formats that
//! depend on the locale.

use jaq_core::ValR;
use jaq_json::{Num, Val};

use crate::order;
use crate::value::{Error, V};

/// The range of seconds that dates are computed from, because the library multiplies them.
const SECONDS_MAX: f64 = 1e12;

/// A value for date calculations, unless it is a number far outside of their range.
pub(crate) fn instant(value: V) -> ValR<V> {
    match value.number() {
        Some(seconds) if seconds.is_nan() || seconds.abs() > SECONDS_MAX => Err(Error::str(
            "error converting number of seconds since epoch to datetime",
        )),
        _ => Ok(value),
    }
}

/// The format of `strftime`, with the locale's parts replaced by those of the C locale.
pub(crate) fn format(format: &V) -> ValR<V> {
    let Some(text) = format.as_str() else {
        return Err(Error::str("strftime/1 requires a string format"));
    };
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('c') => out.push_str("%a %b %e %H:%M:%S %Y"),
            Some('x') => out.push_str("%m/%d/%y"),
            Some('X') => out.push_str("%H:%M:%S"),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    Ok(V::from(out))
}

/// Converts `[year, month, day, hour, minute, second, ...]` to seconds since 1970. Months and days may exceed their
/// ranges.
pub(crate) fn seconds(parts: &V) -> ValR<V> {
    let Some(parts) = parts.as_array() else {
        return Err(Error::str("mktime requires array of 6 numbers"));
    };
    let part = |n: usize| match parts.get(n) {
        Some(Val::Num(number)) => {
            let float = order::float(number);
            (float.abs() < 1e9).then_some(float.trunc() as i64)
        }
        _ => None,
    };
    let found: Option<Vec<i64>> = (0..6).map(part).collect();
    let Some([year, month, day, hour, minute, second]) = found.as_deref() else {
        let message = match parts.len() {
            6.. => "mktime requires parsed datetime inputs",
            _ => "mktime requires array of 6 numbers",
        };
        return Err(Error::str(message));
    };
    let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12) + 1);
    let days = days_before(year, month) + day - 1;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Ok(V::num(Num::from_integral(seconds)))
}

/// The days from 1970 to the first of a month, in the Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // Years begin in March here, so that the leap day is their last day.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// jq's result for a text without a day: the day is 0, and weekday and day of the year are those of the day before the
/// first. `parts`: as parsed with the first of the month.
pub(crate) fn without_day(parts: &V, has_month: &V) -> ValR<V> {
    let Some(parts) = parts.as_array() else {
        return Ok(parts.clone());
    };
    let mut parts = parts.to_vec();
    let int = |value: i64| Val::Num(Num::from_integral(value));
    let number = |value: Option<&Val>| match value {
        Some(Val::Num(number)) => order::float(number) as i64,
        _ => 0,
    };
    if parts.len() == 8 {
        let (weekday, day) = match has_month.val {
            Val::Bool(true) => ((number(parts.get(6)) + 6) % 7, number(parts.get(7)) - 1),
            // The weekday and day that jq 1.6 computes for the zeroth of January 1900.
            _ => (8, 367),
        };
        parts[2] = int(0);
        parts[6] = int(weekday);
        parts[7] = int(day);
    }
    Ok(V::new(Val::Arr(std::sync::Arc::new(parts))))
}
