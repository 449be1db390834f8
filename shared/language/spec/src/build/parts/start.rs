//! Start, schedule and cron definitions (sections "Start Definition", "Schedule Definition",
//! "Cron Definition", docs/language.md#decision-41, #decision-42 and #decision-43).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::schedule::{Calendar, Interval, Zone};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Schedule, StateId, When};

use crate::build::ctx::{Ctx, Obj};
use crate::time::cron;

impl Ctx<'_> {
    /// The starting state: the one in `start`, otherwise the first one.
    pub fn start(&mut self, root: Obj<'_>) -> StateId {
        let first = StateId(0);
        let Some(node) = root.get("start") else {
            return first;
        };
        if node.as_str().is_some() {
            self.set_start_location(self.location(node));
            return self.state_ref(node, "'start'").unwrap_or(first);
        }
        if node.members().is_none() {
            self.wrong_type(node, "'start'", "a state's name or an object");
            return first;
        }
        let Some(obj) = self.object(node, "'start'", &["stateName", "schedule"]) else {
            return first;
        };
        match obj.get("schedule") {
            Some(node) => {
                self.workflow.schedule = self.schedule(node);
                self.check_over(node);
            }
            None if obj.has("stateName") => {
                let message = "'start' is an object without 'schedule'".to_owned();
                self.loose(node, message, "write the state's name alone".to_owned());
            }
            None => self.missing(obj, "'start'", &["schedule"]),
        }
        let Some(node) = obj.get("stateName") else {
            return first;
        };
        self.set_start_location(self.location(node));
        self.state_ref(node, "'stateName'").unwrap_or(first)
    }

    /// A schedule that is entirely in the past starts nothing any more.
    fn check_over(&mut self, node: &Node) {
        let (Some(now), Some(schedule)) = (self.options.now, &self.workflow.schedule) else {
            return;
        };
        // An interval that begins at the deployment is evaluated from just before it.
        let before = Timestamp(now.0.saturating_sub(1));
        if let Ok(calendar) = Calendar::new(schedule)
            && calendar.next_after(before, now).is_none()
        {
            self.warn(
                node,
                codes::SCHEDULE_OVER,
                format!("the schedule is entirely in the past: at {now} it is over"),
                "give it a later end, or remove it".to_owned(),
            );
        }
    }

    fn schedule(&mut self, node: &Node) -> Option<Schedule> {
        if let Some(read) = self.dialect.parts.schedule {
            return read(self, node);
        }
        let plain = |when| Schedule {
            when,
            timezone: None,
            exclusive: false,
        };
        if node.as_str().is_some() {
            return self.interval(node, &Zone::utc()).map(plain);
        }
        if node.members().is_none() {
            self.wrong_type(node, "'schedule'", "an interval or an object");
            return None;
        }
        let obj = self.object(node, "'schedule'", &["interval", "cron", "timezone"])?;
        let (when, timezone) = self.times(obj, Ctx::interval)?;
        Some(Schedule {
            when,
            timezone,
            exclusive: false,
        })
    }

    /// The times of a schedule, and its time zone.
    pub fn times(
        &mut self,
        obj: Obj<'_>,
        interval: impl FnOnce(&mut Self, &Node, &Zone) -> Option<When>,
    ) -> Option<(When, Option<String>)> {
        let timezone = self.opt_string(obj, "timezone");
        let mut zone = Zone::utc();
        if let (Some(name), Some(node)) = (&timezone, obj.get("timezone")) {
            match Zone::parse(name) {
                Ok(known) => zone = known,
                Err(error) => self.error(
                    node,
                    codes::BAD_TIME_ZONE,
                    error.to_string(),
                    "use a name of the IANA database, such as 'Europe/Berlin'".to_owned(),
                ),
            }
        }
        let when = match (obj.get("interval"), obj.get("cron")) {
            (Some(every), Some(cron)) => {
                self.exclusive(obj, "a schedule", &["interval", "cron"]);
                // Errors inside them are reported too.
                interval(self, every, &zone);
                self.cron(cron, &zone);
                return None;
            }
            (None, None) => {
                self.missing(obj, "a schedule", &["interval", "cron"]);
                return None;
            }
            (Some(node), None) => interval(self, node, &zone)?,
            (None, Some(node)) => self.cron(node, &zone)?,
        };
        Some((when, timezone))
    }

    /// It always repeats: without `R/`, it is read as if it had it (docs/language.md#decision-42).
    fn interval(&mut self, node: &Node, zone: &Zone) -> Option<When> {
        let written = self.interval_text(node, "the interval")?;
        let written = written.as_str();
        let repeats = written.starts_with('R');
        let text = match repeats {
            true => written.to_owned(),
            false => match between(written) {
                Some((start, seconds)) => format!("R/{start}/PT{seconds}S"),
                None => format!("R/{written}"),
            },
        };
        let problem = match Interval::in_zone(&text, zone) {
            Ok(interval) if interval.count.is_some() => {
                Some("a number of repetitions cannot be given".to_owned())
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            let hint = match written.split_whitespace().count() {
                5.. => "a cron expression goes under 'cron': {cron: ...}",
                _ => {
                    "write 'R/<start>/<duration>', 'R/<duration>/<end>' or 'R/<duration>', such as 'R/PT2H'"
                }
            };
            let message = format!("'{written}' is not a valid repeating interval: {problem}");
            self.error(node, codes::BAD_INTERVAL, message, hint.to_owned());
            return None;
        }
        if !repeats {
            self.warn(
                node,
                codes::INTERVAL_WITHOUT_R,
                format!("the interval '{written}' lacks 'R/'; it is read as repeating"),
                format!("write '{text}'"),
            );
        }
        Some(When::Interval(text))
    }

    /// A window in which instances may be created; with `R/`, the times at which one is created
    /// (docs/language.md#decision-42).
    pub fn window(&mut self, node: &Node, zone: &Zone) -> Option<When> {
        let text = self.interval_text(node, "the interval")?;
        let repeats = text.starts_with('R');
        let problem = match Interval::in_zone(&text, zone) {
            Ok(interval) if interval.count.is_some() => {
                "a number of repetitions cannot be given".to_owned()
            }
            Ok(_) if repeats => return Some(When::Interval(text)),
            Ok(_) => return Some(When::Window(text)),
            Err(error) => error.to_string(),
        };
        let hint = match text.split_whitespace().count() {
            5.. if self.dialect.parts.schedule.is_some() => "a cron expression goes under 'cron'",
            _ => "write '<start>/<end>', '<start>/<duration>', '<duration>/<end>' or '<duration>'",
        };
        let message = format!("'{text}' is not an ISO 8601 interval: {problem}");
        self.error(node, codes::BAD_INTERVAL, message, hint.to_owned());
        None
    }

    pub fn cron(&mut self, node: &Node, zone: &Zone) -> Option<When> {
        if node.as_str().is_some() {
            let expression = self.cron_expression(node)?;
            return Some(When::Cron {
                expression,
                valid_until: None,
            });
        }
        if node.members().is_none() {
            self.wrong_type(node, "'cron'", "a cron expression or an object");
            return None;
        }
        let obj = self.object(node, "'cron'", &["expression", "validUntil"])?;
        let valid_until = obj
            .get("validUntil")
            .and_then(|node| self.constant_text(node, "'validUntil'"));
        if let (Some(text), Some(node)) = (&valid_until, obj.get("validUntil"))
            && let Err(error) = zone.instant(text)
        {
            let message = format!("'validUntil' is not a date and time: {error}");
            self.error(
                node,
                codes::BAD_DATE_TIME,
                message,
                "write for example '2024-11-05T08:15:30-05:00'".to_owned(),
            );
        }
        let Some(node) = obj.get("expression") else {
            self.missing(obj, "'cron'", &["expression"]);
            return None;
        };
        let expression = self.cron_expression(node)?;
        Some(When::Cron {
            expression,
            valid_until,
        })
    }

    fn cron_expression(&mut self, node: &Node) -> Option<String> {
        let text = self.string(node, "a cron expression")?;
        let (message, hint) = match cron::parse(&text) {
            Ok(cron) if !cron::never_fires(&cron) => return Some(text),
            Ok(_) => (
                format!("the cron expression '{text}' never fires"),
                "there is no such day; February has at most 29",
            ),
            Err(error) => (
                format!("'{text}' is not a valid cron expression: {error}"),
                "5 fields begin with the minute, 6 with the second, 7 end with the year",
            ),
        };
        self.error(node, codes::BAD_CRON, message, hint.to_owned());
        None
    }
}

/// The start of an interval that has a start and an end, as in an example of the specification, and the seconds between.
fn between(interval: &str) -> Option<(&str, i64)> {
    let (start, end) = interval.split_once('/')?;
    let begins = Timestamp::parse(start).ok()?;
    let ends = Timestamp::parse(end).ok()?;
    let seconds = ends.0.checked_sub(begins.0)? / 1_000;
    (seconds > 0).then_some((start, seconds))
}

#[cfg(test)]
mod tests {
    use swirl_model::time::Timestamp;

    use crate::build::parts::testing::show;
    use crate::options::Options;
    use crate::reader;
    use crate::resource::MapResources;

    #[test]
    fn a_schedule_in_the_past_is_warned_of() {
        let over = "warning schedule-over /start/schedule 5";
        for (schedule, expected) in [
            ("R/2024-01-01T00:00:00Z/PT1H", ""),
            ("R/PT1H/2024-06-01T00:00:00Z", over),
            ("R/PT1H/2024-06-01T02:00:00Z", ""),
            ("R/PT1H", ""),
            ("{cron: '0 0 8 * * ? 2023'}", over),
            ("{cron: '0 0 8 * * ? 2025'}", ""),
            (
                "{cron: {expression: '0 8 * * *', validUntil: '2024-05-31T23:00:00Z'}}",
                over,
            ),
            (
                "{cron: {expression: '0 8 * * *', validUntil: '2024-06-01T08:00:01Z'}}",
                "",
            ),
        ] {
            let document = format!(
                "id: a\nversion: 1.0.0\nspecVersion: '0.8'\nstates: [{{name: A, type: inject, data: {{}}, end: true}}]\nstart: {{schedule: {schedule}}}\n"
            );
            let mut options = Options::default();
            let read = |options: &Options| {
                show(&reader::read(
                    document.as_bytes(),
                    &MapResources::default(),
                    options,
                ))
            };
            assert_eq!(read(&options), "", "{schedule}: without the time");
            options.now = Some(Timestamp::parse("2024-06-01T00:00:00Z").unwrap());
            assert_eq!(read(&options), expected, "{schedule}");
        }
    }
}
