//! The fields of a cron expression.

use super::{CronError, Days, Weekdays, YEAR_MAX, YEAR_MIN};

/// The range of values of a field.
pub(super) struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Names of the values, from `first_name` on.
    names: &'static [&'static str],
    first_name: u32,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Field {
    pub const SECOND: Field = Field::new("second", 0, 59, &[], 0);
    pub const MINUTE: Field = Field::new("minute", 0, 59, &[], 0);
    pub const HOUR: Field = Field::new("hour", 0, 23, &[], 0);
    const DAY: Field = Field::new("day of month", 1, 31, &[], 0);
    pub const MONTH: Field = Field::new("month", 1, 12, &MONTHS, 1);
    pub const WEEKDAY_FROM_0: Field = Field::new("day of week", 0, 7, &WEEKDAYS, 0);
    pub const WEEKDAY_FROM_1: Field = Field::new("day of week", 1, 7, &WEEKDAYS, 1);
    const YEAR: Field = Field::new("year", YEAR_MIN, YEAR_MAX, &[], 0);

    const fn new(
        name: &'static str,
        min: u32,
        max: u32,
        names: &'static [&'static str],
        first_name: u32,
    ) -> Field {
        Field {
            name,
            min,
            max,
            names,
            first_name,
        }
    }

    fn wrong(&self, text: &str) -> CronError {
        CronError::Syntax {
            field: self.name,
            text: text.chars().take(60).collect(),
        }
    }

    fn number(&self, text: &str) -> Result<u32, CronError> {
        if let Some(at) = self
            .names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text))
        {
            return Ok(self.first_name + at as u32);
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong(text));
        }
        let value: Option<u32> = text.parse().ok();
        value
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| {
                let value = text.chars().take(20).collect();
                CronError::Range {
                    field: self.name,
                    value,
                    min: self.min,
                    max: self.max,
                }
            })
    }

    /// The values of one item: `*`, `3`, `3-7`, and steps of them.
    fn values(&self, item: &str) -> Result<Vec<u32>, CronError> {
        let (range, step) = match item.split_once('/') {
            None => (item, None),
            Some((range, step)) => (range, Some(step)),
        };
        let size = self.max - self.min + 1;
        let each = match step {
            None => 1,
            Some(text) => {
                if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(self.wrong(item));
                }
                let each: Option<u32> = text.parse().ok();
                each.filter(|each| (1..=size).contains(each))
                    .ok_or_else(|| CronError::Step {
                        field: self.name,
                        step: text.chars().take(20).collect(),
                    })?
            }
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((from, to)) => (self.number(from)?, self.number(to)?),
            // `5/10` is from 5 on.
            None if step.is_some() => (self.number(range)?, self.max),
            None => (self.number(range)?, self.number(range)?),
        };
        if from <= to {
            return Ok((from..=to).step_by(each as usize).collect());
        }
        if self.name == Field::YEAR.name {
            return Err(CronError::Years {
                field: self.name,
                from,
                to,
            });
        }
        // Around the end: FRI-MON, 22-2. Days of the week from 0 have Sunday at both ends.
        let size = if self.max == 7 { 7 } else { size };
        let around = (from..=to + size).step_by(each as usize);
        Ok(around
            .map(|value| (value - self.min) % size + self.min)
            .collect())
    }

    pub fn bits(&self, text: &str) -> Result<u64, CronError> {
        let mut bits = 0;
        for item in text.split(',') {
            if item == "?" {
                return Err(CronError::NotHere {
                    field: self.name,
                    what: '?',
                });
            }
            for value in self.values(item)? {
                bits |= 1 << value;
            }
        }
        Ok(bits)
    }
}

fn is_open(text: &str) -> bool {
    text.starts_with(['*', '?'])
}

pub(super) fn days(text: &str) -> Result<Days, CronError> {
    let field = &Field::DAY;
    let mut days = Days {
        restricted: !is_open(text),
        ..Days::default()
    };
    if text == "?" {
        days.plain = field.bits("*")?;
        return Ok(days);
    }
    for item in text.split(',') {
        let upper = item.to_ascii_uppercase();
        if let Some(rest) = upper.strip_prefix('L') {
            let (rest, working) = match rest.strip_suffix('W') {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let before = match rest.strip_prefix('-') {
                None if rest.is_empty() => 0,
                Some(number) => field.number(number)?.min(30) as u8,
                None => return Err(field.wrong(item)),
            };
            if working {
                days.last_working.push(before)
            } else {
                days.before_last.push(before)
            }
        } else if let Some(day) = upper.strip_suffix('W') {
            days.working.push(field.number(day)? as u8);
        } else {
            days.plain |= field.bits(item)?;
        }
    }
    Ok(days)
}

pub(super) fn weekdays(field: &Field, text: &str) -> Result<Weekdays, CronError> {
    // Sunday is bit 0 in both ways of counting.
    let from_sunday = |value: u32| (value - field.first_name) % 7;
    let mut weekdays = Weekdays {
        restricted: !is_open(text),
        ..Weekdays::default()
    };
    if text == "?" {
        weekdays.plain = 0x7f;
        return Ok(weekdays);
    }
    for item in text.split(',') {
        let upper = item.to_ascii_uppercase();
        if upper == "L" {
            // The last day of the week.
            weekdays.plain |= 1 << 6;
        } else if let Some((day, which)) = upper.split_once('#') {
            let which = match which {
                "1" | "2" | "3" | "4" | "5" => which.as_bytes()[0] - b'0',
                _ => return Err(field.wrong(item)),
            };
            weekdays
                .nth
                .push((from_sunday(field.number(day)?) as u8, which));
        } else if let Some(day) = upper.strip_suffix('L') {
            weekdays.last.push(from_sunday(field.number(day)?) as u8);
        } else {
            if item == "?" {
                return Err(field.wrong(text));
            }
            for value in field.values(item)? {
                weekdays.plain |= 1 << from_sunday(value);
            }
        }
    }
    Ok(weekdays)
}

pub(super) fn years(text: &str) -> Result<Vec<bool>, CronError> {
    let mut years = vec![false; (YEAR_MAX - YEAR_MIN + 1) as usize];
    for item in text.split(',') {
        for value in Field::YEAR.values(item)? {
            years[(value - YEAR_MIN) as usize] = true;
        }
    }
    Ok(years)
}

#[cfg(test)]
mod tests {
    use super::super::Cron;

    #[test]
    fn bad_expressions() {
        for (text, error) in [
            ("", "it has 0 fields, and must have 5, 6 or 7"),
            ("* * * *", "it has 4 fields, and must have 5, 6 or 7"),
            (
                "* * * * * * * *",
                "it has 8 fields, and must have 5, 6 or 7",
            ),
            ("60 * * * *", "minute: 60 is not between 0 and 59"),
            ("* 24 * * *", "hour: 24 is not between 0 and 23"),
            ("* * 0 * *", "day of month: 0 is not between 1 and 31"),
            ("* * 32 * *", "day of month: 32 is not between 1 and 31"),
            ("* * * 13 *", "month: 13 is not between 1 and 12"),
            ("* * * * 8", "day of week: 8 is not between 0 and 7"),
            ("0 * * * * 0", "day of week: 0 is not between 1 and 7"),
            ("0 * * * * 8", "day of week: 8 is not between 1 and 7"),
            (
                "0 * * * * ? 1969",
                "year: 1969 is not between 1970 and 2299",
            ),
            (
                "0 * * * * ? 2030-2020",
                "year: the years 2030-2020 are in the wrong order",
            ),
            ("*/0 * * * *", "minute: a step of 0 is too large or zero"),
            ("*/90 * * * *", "minute: a step of 90 is too large or zero"),
            ("? * * * *", "minute: '?' is allowed only for days"),
            ("a * * * *", "minute: 'a' is not understood"),
            ("1- * * * *", "minute: '' is not understood"),
            ("1,,2 * * * *", "minute: '' is not understood"),
            ("1/ * * * *", "minute: '1/' is not understood"),
            ("+1 * * * *", "minute: '+1' is not understood"),
            ("* * * FOO *", "month: 'FOO' is not understood"),
            ("* * LX * *", "day of month: 'LX' is not understood"),
            ("* * L-0 * *", "day of month: 0 is not between 1 and 31"),
            ("* * W * *", "day of month: '' is not understood"),
            ("* * * * 5#6", "day of week: '5#6' is not understood"),
            ("* * * * MON,?", "day of week: 'MON,?' is not understood"),
            ("@daily", "it has 1 fields, and must have 5, 6 or 7"),
            (
                "99999999999999999999 * * * *",
                "minute: 99999999999999999999 is not between 0 and 59",
            ),
            ("\u{e9} * * * *", "minute: '\u{e9}' is not understood"),
        ] {
            let found = Cron::parse(text).unwrap_err().to_string();
            assert_eq!(found, error, "{text}");
        }
    }

    #[test]
    fn the_same_in_other_words() {
        for (one, other) in [
            ("* * * * SUN", "* * * * 0"),
            ("* * * * 7", "* * * * 0"),
            ("* * * * 5-7", "* * * * FRI,SAT,SUN"),
            ("* * * * fri-mon", "* * * * 0,1,5,6"),
            ("* * * * 0-7", "* * * * 0-6"),
            ("0 * * * * 1", "* * * * SUN"),
            ("0 * * * * SUN", "* * * * 0"),
            ("0 * * ? * 2-6", "* * ? * MON-FRI"),
            ("0 * * ? * 6L", "* * ? * 5L"),
            ("0 * * ? * FRIL", "* * ? * friL"),
            ("0 * * ? * 6#2", "* * ? * 5#2"),
            ("0 * * ? * FRI-MON", "* * ? * 5-1"),
            ("* 22-2 * * *", "* 22,23,0,1,2 * * *"),
            ("* 22-4/3 * * *", "* 22,1,4 * * *"),
            ("5/20 * * * *", "5,25,45 * * * *"),
            ("* * * nov-feb *", "* * * 11,12,1,2 *"),
            ("0 * * * * * *", "* * * * *"),
        ] {
            assert_eq!(Cron::parse(one), Cron::parse(other), "{one} = {other}");
        }
    }
}
