//! The next time of a cron expression.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};

use super::super::zone::Zone;
use super::{Cron, YEAR_MIN};
use crate::time::Timestamp;

/// The calendar repeats after this many years: a time that doesn't occur in them never does.
const CYCLE_YEARS: i16 = 400;

impl Cron {
    /// The first time after `after`. A local time that is skipped fires when the clocks are put forward. When they are
    /// put back, an expression that fires in every hour, or several times in an hour, fires in both hours; the others
    /// fire the first time only (docs/language.md#decision-41 and #decision-79). `None` if there is none.
    pub fn next_after(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let first = self.next_first(after, zone);
        let again = match self.is_frequent() {
            true => self.next_repeated(after, zone),
            false => None,
        };
        first.into_iter().chain(again).min()
    }

    /// It fires in every hour, or several times in an hour.
    fn is_frequent(&self) -> bool {
        let in_an_hour = self.minutes.count_ones() * self.seconds.count_ones();
        in_an_hour > 1 || self.hours.count_ones() == 24
    }

    /// The first time after `after` if each local time counts once.
    fn next_first(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        // Local times and their instants grow together, so the search goes by local time alone.
        let mut from = zone.local(after)?;
        let first_year = from.year();
        loop {
            let local = self.local_from(from, first_year)?;
            let at = zone.resolve(local)?;
            if at > after {
                return Some(at);
            }
            // A doubled hour, or the second of `after` itself.
            from = local.checked_add(SignedDuration::from_secs(1)).ok()?;
        }
    }

    /// The first time after `after` among the local times that come for the second time, about now.
    fn next_repeated(&self, after: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let (begin, length) = zone.repeated(after)?;
        let begin_local = zone.local(begin)?;
        let mut from = zone.local(begin.max(after))?;
        loop {
            let local = self.local_from(from, from.year())?;
            let passed = local.duration_since(begin_local);
            if passed >= length {
                return None;
            }
            let at = Timestamp(begin.0.checked_add(passed.as_millis() as i64)?);
            if at > after {
                return Some(at);
            }
            from = local.checked_add(SignedDuration::from_secs(1)).ok()?;
        }
    }

    /// The first local time at or after one, within a cycle from `first_year`.
    fn local_from(&self, from: DateTime, first_year: i16) -> Option<DateTime> {
        let mut date = self.date_from(from.date(), first_year)?;
        let mut time = match date == from.date() {
            true => (from.hour(), from.minute(), from.second()),
            false => (0, 0, 0),
        };
        loop {
            if let Some((hour, minute, second)) = self.time_from(time) {
                let time = jiff::civil::time(hour, minute, second, 0);
                return Some(DateTime::from_parts(date, time));
            }
            date = self.date_from(date.tomorrow().ok()?, first_year)?;
            time = (0, 0, 0);
        }
    }

    /// The first time of day at or after one.
    fn time_from(&self, (hour, minute, second): (i8, i8, i8)) -> Option<(i8, i8, i8)> {
        let first_hour = least(self.hours, hour)?;
        let (minute, second) = if first_hour == hour {
            (minute, second)
        } else {
            (0, 0)
        };
        let found = least(self.minutes, minute).and_then(|first| {
            let second = if first == minute { second } else { 0 };
            match least(self.seconds, second) {
                Some(second) => Some((first, second)),
                None => Some((least(self.minutes, first + 1)?, least(self.seconds, 0)?)),
            }
        });
        match found {
            Some((minute, second)) => Some((first_hour, minute, second)),
            None => {
                let hour = least(self.hours, first_hour + 1)?;
                Some((hour, least(self.minutes, 0)?, least(self.seconds, 0)?))
            }
        }
    }

    /// The first date at or after one, within a cycle from `first_year`.
    fn date_from(&self, from: Date, first_year: i16) -> Option<Date> {
        let last_year = first_year.saturating_add(CYCLE_YEARS).min(9999);
        let (mut year, mut month, mut day) = (from.year(), from.month(), from.day());
        while year <= last_year {
            if self.has_year(year) {
                while let Some(found) = least(self.months, month) {
                    if found != month {
                        (month, day) = (found, 1);
                    }
                    let first = Date::new(year, month, 1).ok()?;
                    let length = first.days_in_month();
                    let weekday = first.weekday().to_sunday_zero_offset();
                    let matches = |day: &i8| self.has_day(*day, length, weekday);
                    if let Some(day) = (day..=length).find(matches) {
                        return Date::new(year, month, day).ok();
                    }
                    (month, day) = (month + 1, 1);
                }
            }
            (year, month, day) = (year + 1, 1, 1);
        }
        None
    }

    fn has_year(&self, year: i16) -> bool {
        let index = i32::from(year) - YEAR_MIN as i32;
        self.years.is_empty()
            || usize::try_from(index).is_ok_and(|at| self.years.get(at) == Some(&true))
    }

    /// In a month of `length` days whose first has the weekday `first`.
    fn has_day(&self, day: i8, length: i8, first: i8) -> bool {
        let weekday = (first + day - 1) % 7;
        let (days, weekdays) = (&self.days, &self.weekdays);
        let by_day = || {
            days.plain & (1 << day) != 0
                || days
                    .before_last
                    .iter()
                    .any(|before| day == length - *before as i8)
                || days
                    .working
                    .iter()
                    .any(|wanted| day == working(*wanted as i8, length, first))
                || days
                    .last_working
                    .iter()
                    .any(|before| day == working(length - *before as i8, length, first))
        };
        let by_weekday = || {
            weekdays.plain & (1 << weekday) != 0
                || weekdays
                    .last
                    .iter()
                    .any(|last| weekday == *last as i8 && day > length - 7)
                || weekdays.nth.iter().any(|(wanted, nth)| {
                    weekday == *wanted as i8 && (day - 1) / 7 == *nth as i8 - 1
                })
        };
        match days.restricted && weekdays.restricted {
            true => by_day() || by_weekday(),
            false => by_day() && by_weekday(),
        }
    }
}

/// The working day (Monday to Friday) next to a day, in the same month; 0 if there is no such day.
fn working(day: i8, length: i8, first: i8) -> i8 {
    if day < 1 || day > length {
        return 0;
    }
    match (first + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

/// The least set bit at or above `from`.
fn least(bits: u64, from: i8) -> Option<i8> {
    let rest = bits.checked_shr(from as u32)?;
    (rest != 0).then(|| from + rest.trailing_zeros() as i8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next times after an instant, in UTC, without their seconds if these are zero.
    fn times(text: &str, zone: &str, after: &str, count: usize) -> String {
        let cron = Cron::parse(text).unwrap();
        let zone = Zone::parse(zone).unwrap();
        let mut now = Timestamp::parse(&format!("{after}Z")).unwrap();
        let mut found = Vec::new();
        for _ in 0..count {
            let Some(next) = cron.next_after(now, &zone) else {
                found.push("never".to_owned());
                break;
            };
            assert!(next > now, "{text}");
            let shown = next.to_string();
            let shown = shown.strip_suffix('Z').unwrap_or(&shown);
            found.push(shown.strip_suffix(":00").unwrap_or(shown).to_owned());
            now = next;
        }
        found.join(" ")
    }

    /// Rows of `expression | zone (UTC if left out) | after | the next two times`.
    fn check(table: &str) {
        let mut checked = 0;
        for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
            if row.starts_with("# ") {
                continue;
            }
            let (text, zone, after, expected) = match row.split(" | ").collect::<Vec<_>>()[..] {
                [text, after, expected] => (text, "UTC", after, expected),
                [text, zone, after, expected] => (text, zone, after, expected),
                _ => panic!("{row}"),
            };
            assert_eq!(times(text, zone, after, 2), expected, "{row}");
            checked += 1;
        }
        assert!(checked > 10);
    }

    #[test]
    fn in_utc() {
        check(
            "
            * * * * * | 2024-01-01T00:00:00 | 2024-01-01T00:01 2024-01-01T00:02
            * * * * * | 2024-01-01T00:00:59.999 | 2024-01-01T00:01 2024-01-01T00:02
            */15 * * * * | 2024-01-01T00:07:00 | 2024-01-01T00:15 2024-01-01T00:30
            5 * * * * | 2024-01-01T00:05:00 | 2024-01-01T01:05 2024-01-01T02:05
            0 0 * * * | 2024-02-28T12:00:00 | 2024-02-29T00:00 2024-03-01T00:00
            59 23 31 12 * | 2024-06-01T00:00:00 | 2024-12-31T23:59 2025-12-31T23:59
            0 9-17/4 * * * | 2024-01-01T09:00:00 | 2024-01-01T13:00 2024-01-01T17:00
            0 9,12 * * * | 2024-01-01T12:00:00 | 2024-01-02T09:00 2024-01-02T12:00
            0 22-2 * * * | 2024-01-01T23:30:00 | 2024-01-02T00:00 2024-01-02T01:00
            0 0 1 * * | 2024-01-31T00:00:00 | 2024-02-01T00:00 2024-03-01T00:00
            0 0 31 * * | 2024-01-31T00:00:00 | 2024-03-31T00:00 2024-05-31T00:00
            0 0 30 * * | 2024-01-30T00:00:00 | 2024-03-30T00:00 2024-04-30T00:00
            0 0 29 2 * | 2024-02-29T00:00:00 | 2028-02-29T00:00 2032-02-29T00:00
            0 0 29 2 * | 2096-03-01T00:00:00 | 2104-02-29T00:00 2108-02-29T00:00
            0 0 30 2 * | 2024-01-01T00:00:00 | never
            0 0 31 4,6,9,11 * | 2024-01-01T00:00:00 | never
            0 0 * jan,JUL * | 2024-01-31T00:00:00 | 2024-07-01T00:00 2024-07-02T00:00
            0 0 * * MON | 2024-01-01T00:00:00 | 2024-01-08T00:00 2024-01-15T00:00
            0 0 * * 0 | 2024-01-01T00:00:00 | 2024-01-07T00:00 2024-01-14T00:00
            0 0 * * 7 | 2024-01-01T00:00:00 | 2024-01-07T00:00 2024-01-14T00:00
            0 0 * * 1-5 | 2024-01-05T00:00:00 | 2024-01-08T00:00 2024-01-09T00:00
            0 0 * * sat-mon | 2024-01-06T00:00:00 | 2024-01-07T00:00 2024-01-08T00:00
            # Either day field, if both are restricted; both, if one begins with a star.
            0 0 13 * FRI | 2024-01-01T00:00:00 | 2024-01-05T00:00 2024-01-12T00:00
            0 0 13 * FRI | 2024-01-12T00:00:00 | 2024-01-13T00:00 2024-01-19T00:00
            0 0 */2 * MON | 2024-01-01T00:00:00 | 2024-01-15T00:00 2024-01-29T00:00
            0 0 ? * WED | 2024-01-01T00:00:00 | 2024-01-03T00:00 2024-01-10T00:00
            0 0 L * * | 2024-01-01T00:00:00 | 2024-01-31T00:00 2024-02-29T00:00
            0 0 L 2 ? | 2024-03-01T00:00:00 | 2025-02-28T00:00 2026-02-28T00:00
            0 0 L-3 * * | 2024-01-29T00:00:00 | 2024-02-26T00:00 2024-03-28T00:00
            0 0 L-30 * * | 2024-01-02T00:00:00 | 2024-03-01T00:00 2024-05-01T00:00
            0 0 LW * * | 2024-03-01T00:00:00 | 2024-03-29T00:00 2024-04-30T00:00
            0 0 L-3W * * | 2024-03-01T00:00:00 | 2024-03-28T00:00 2024-04-26T00:00
            0 0 15W * * | 2024-06-01T00:00:00 | 2024-06-14T00:00 2024-07-15T00:00
            0 0 15W 9 * | 2024-01-01T00:00:00 | 2024-09-16T00:00 2025-09-15T00:00
            0 0 1W * * | 2024-05-31T00:00:00 | 2024-06-03T00:00 2024-07-01T00:00
            0 0 31W * * | 2024-03-01T00:00:00 | 2024-03-29T00:00 2024-05-31T00:00
            0 0 1,L * * | 2024-01-01T00:00:00 | 2024-01-31T00:00 2024-02-01T00:00
            0 0 * * 5L | 2024-01-01T00:00:00 | 2024-01-26T00:00 2024-02-23T00:00
            0 0 * * 0L | 2024-02-01T00:00:00 | 2024-02-25T00:00 2024-03-31T00:00
            0 0 * * L | 2024-01-01T00:00:00 | 2024-01-06T00:00 2024-01-13T00:00
            0 0 * * 5#2 | 2024-01-01T00:00:00 | 2024-01-12T00:00 2024-02-09T00:00
            0 0 * * MON#1,MON#3 | 2024-01-01T00:00:00 | 2024-01-15T00:00 2024-02-05T00:00
            0 0 * * 5#5 | 2024-01-01T00:00:00 | 2024-03-29T00:00 2024-05-31T00:00
            0 0 * 2 1#5 | 2024-01-01T00:00:00 | 2044-02-29T00:00 2072-02-29T00:00
            ",
        );
    }

    #[test]
    fn with_seconds_and_years() {
        check(
            "
            * * * * * * | 2024-01-01T00:00:00 | 2024-01-01T00:00:01 2024-01-01T00:00:02
            * * * * * * | 2024-12-31T23:59:59.5 | 2025-01-01T00:00 2025-01-01T00:00:01
            */20 * * * * ? | 2024-01-01T00:00:50 | 2024-01-01T00:01 2024-01-01T00:01:20
            0/30 5 * * * ? | 2024-01-01T00:05:30 | 2024-01-01T01:05 2024-01-01T01:05:30
            0 0/15 * * * ? | 2024-01-01T00:01:00 | 2024-01-01T00:15 2024-01-01T00:30
            0 0 12 ? * 1 | 2024-01-01T00:00:00 | 2024-01-07T12:00 2024-01-14T12:00
            0 0 12 ? * 7 | 2024-01-01T00:00:00 | 2024-01-06T12:00 2024-01-13T12:00
            0 0 12 ? * 2-6 | 2024-01-05T12:00:00 | 2024-01-08T12:00 2024-01-09T12:00
            0 15 10 ? * 6L | 2024-01-01T00:00:00 | 2024-01-26T10:15 2024-02-23T10:15
            0 15 10 ? * 6#3 | 2024-01-01T00:00:00 | 2024-01-19T10:15 2024-02-16T10:15
            0 0 0 1 1 ? 2030 | 2024-01-01T00:00:00 | 2030-01-01T00:00 never
            0 0 0 1 1 ? 2020 | 2024-01-01T00:00:00 | never
            0 0 0 1 1 ? 2024/2 | 2024-01-01T00:00:00 | 2026-01-01T00:00 2028-01-01T00:00
            0 0 0 1 1 ? 2025-2026,2030 | 2025-06-01T00:00:00 | 2026-01-01T00:00 2030-01-01T00:00
            0 0 0 29 2 ? 2025-2027 | 2024-01-01T00:00:00 | never
            59 59 23 31 12 ? 2299 | 2024-01-01T00:00:00 | 2299-12-31T23:59:59 never
            ",
        );
    }

    #[test]
    fn when_clocks_change() {
        check(
            "
            0 9 * * * | America/New_York | 2024-03-09T14:00:00 | 2024-03-10T13:00 2024-03-11T13:00
            0 9 * * * | Europe/Berlin | 2024-03-30T08:00:00 | 2024-03-31T07:00 2024-04-01T07:00
            # Skipped: 02:00 to 03:00 on 10 March, 31 March in Berlin.
            30 2 * * * | America/New_York | 2024-03-09T12:00:00 | 2024-03-10T07:00 2024-03-11T06:30
            0 2 * * * | America/New_York | 2024-03-09T12:00:00 | 2024-03-10T07:00 2024-03-11T06:00
            30 2 * * * | Europe/Berlin | 2024-03-30T12:00:00 | 2024-03-31T01:00 2024-04-01T00:30
            */20 2 * * * | America/New_York | 2024-03-10T00:00:00 | 2024-03-10T07:00 2024-03-11T06:00
            */30 * * * * | America/New_York | 2024-03-10T06:00:00 | 2024-03-10T06:30 2024-03-10T07:00
            */30 * * * * | America/New_York | 2024-03-10T07:00:00 | 2024-03-10T07:30 2024-03-10T08:00
            0 2,3 * * * | America/New_York | 2024-03-10T05:00:00 | 2024-03-10T07:00 2024-03-11T06:00
            30 2 10 3 * | America/New_York | 2024-01-01T00:00:00 | 2024-03-10T07:00 2025-03-10T06:30
            # Doubled: 01:00 to 02:00 on 3 November, 02:00 to 03:00 on 27 October in Berlin.
            30 1 * * * | America/New_York | 2024-11-02T12:00:00 | 2024-11-03T05:30 2024-11-04T06:30
            30 1 * * * | America/New_York | 2024-11-03T05:45:00 | 2024-11-04T06:30 2024-11-05T06:30
            30 2 * * * | Europe/Berlin | 2024-10-26T12:00:00 | 2024-10-27T00:30 2024-10-28T01:30
            */30 * * * * | America/New_York | 2024-11-03T05:00:00 | 2024-11-03T05:30 2024-11-03T06:00
            */30 * * * * | America/New_York | 2024-11-03T06:15:00 | 2024-11-03T06:30 2024-11-03T07:00
            */30 1 * * * | America/New_York | 2024-11-03T05:30:00 | 2024-11-03T06:00 2024-11-03T06:30
            */30 1 * * * | America/New_York | 2024-11-03T06:30:00 | 2024-11-04T06:00 2024-11-04T06:30
            15 * * * * | America/New_York | 2024-11-03T05:15:00 | 2024-11-03T06:15 2024-11-03T07:15
            20 1,3 * * * | America/New_York | 2024-11-03T05:20:00 | 2024-11-03T08:20 2024-11-04T06:20
            */10 * * * * | Australia/Lord_Howe | 2024-04-06T14:45:00 | 2024-04-06T14:50 2024-04-06T15:00
            */10 * * * * | Australia/Lord_Howe | 2024-04-06T15:20:00 | 2024-04-06T15:30 2024-04-06T15:40
            0 1,2 * * * | Europe/Berlin | 2024-10-26T22:00:00 | 2024-10-26T23:00 2024-10-27T00:00
            0 0 * * * | Asia/Tokyo | 2024-01-01T00:00:00 | 2024-01-01T15:00 2024-01-02T15:00
            0 0 * * * | +05:30 | 2024-01-01T00:00:00 | 2024-01-01T18:30 2024-01-02T18:30
            # Half an hour of daylight saving; a whole day left out; midnight skipped.
            15 2 * * * | Australia/Lord_Howe | 2024-10-05T00:00:00 | 2024-10-05T15:30 2024-10-06T15:15
            0 12 30 12 * | Pacific/Apia | 2011-12-29T00:00:00 | 2011-12-30T10:00 2012-12-29T22:00
            0 0 * * * | America/Sao_Paulo | 2018-11-03T12:00:00 | 2018-11-04T03:00 2018-11-05T02:00
            0 0 L * * | America/New_York | 2024-02-15T00:00:00 | 2024-02-29T05:00 2024-03-31T04:00
            ",
        );
    }

    #[test]
    fn the_edges_of_the_calendar() {
        assert_eq!(
            times("0 0 1 1 *", "UTC", "9998-06-01T00:00:00", 2),
            "9999-01-01T00:00 never"
        );
        let cron = Cron::parse("* * * * *").unwrap();
        assert_eq!(cron.next_after(Timestamp(i64::MAX), &Zone::utc()), None);
        assert_eq!(cron.next_after(Timestamp::MAX, &Zone::utc()), None);
    }

    #[test]
    fn impossible_dates_end_quickly() {
        let begun = std::time::Instant::now();
        assert_eq!(
            times("* * * 30 2 ?", "Europe/Berlin", "2024-01-01T00:00:00", 1),
            "never"
        );
        assert!(begun.elapsed().as_millis() < 1000);
    }
}
