//! Schedules.

use swirl_model::Data;
use swirl_model::workflow::When;

use super::writer::{Writer, object};

impl Writer<'_> {
    /// When instances are created by themselves.
    pub fn schedule(&mut self) -> Option<Data> {
        let by_events = self.event_schedule();
        let Some(schedule) = &self.workflow.schedule else {
            return by_events;
        };
        self.cannot_if(
            schedule.exclusive,
            "only the schedule creates instances; in DSL 1.0 they can be started in other ways too",
        );
        if let When::Window(_) = schedule.when {
            self.cannot("instances may be created only within a window of time");
            return None;
        }
        if by_events.is_some() {
            self.note(
                "the schedule creates nothing, because events start the instances; it is left out",
            );
            return by_events;
        }
        match &schedule.when {
            When::Cron {
                expression,
                valid_until,
            } => {
                self.cannot_if(valid_until.is_some(), "the schedule ends ('validUntil')");
                let utc = |zone: &str| matches!(zone, "UTC" | "Etc/UTC" | "Z" | "GMT");
                let zone = schedule.timezone.as_deref();
                self.cannot_if(
                    zone.is_some_and(|zone| !utc(zone)),
                    "the schedule has a time zone; in DSL 1.0 it is UTC",
                );
                Some(object([("cron", Data::string(expression.as_str()))]))
            }
            When::Interval(interval) => {
                let text = interval.trim();
                let rest = text.strip_prefix("R/").unwrap_or(text);
                if rest.starts_with('P') && !rest.contains('/') {
                    return Some(object([("every", Data::string(rest))]));
                }
                self.cannot("the intervals of the schedule have a beginning or an end");
                None
            }
            When::After(delay) => Some(object([("after", Data::string(delay.as_str()))])),
            When::Window(_) => None,
        }
    }
}
