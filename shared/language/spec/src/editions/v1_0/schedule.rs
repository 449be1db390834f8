//! `schedule` (DSL 1.0, "Schedule").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::schedule::Zone;
use swirl_model::workflow::{EventRead, Period, Schedule, StartOn, When};

use super::Reader;
use super::listen::Sight;
use crate::build::ctx::Obj;

const WAYS: [&str; 4] = ["every", "cron", "after", "on"];

impl Reader<'_, '_> {
    /// Returns the events that start instances.
    pub fn schedule(&mut self, node: &Node) -> Option<StartOn> {
        let obj = self.object(
            node,
            "'schedule'",
            &["every", "cron", "after", "on", "read"],
        )?;
        let given: Vec<&str> = WAYS.into_iter().filter(|way| obj.has(way)).collect();
        let [way] = given.as_slice() else {
            match given.as_slice() {
                [] => self.missing(obj, "'schedule'", &WAYS),
                several => self.exclusive(obj, "'schedule'", several),
            }
            return None;
        };
        let value = obj.get(way)?;
        if let Some(read) = obj.get("read").filter(|_| *way != "on") {
            let message = format!("'read' is for 'on', and the schedule has '{way}'");
            self.error(
                read,
                codes::EXCLUSIVE_PROPERTIES,
                message,
                "remove it".to_owned(),
            );
        }
        let when = match *way {
            "on" => return self.start_on(obj, value),
            "cron" => match value.as_str() {
                Some(_) => self.cron(value, &Zone::utc())?,
                None => {
                    self.wrong_type(value, "'cron'", "a cron expression");
                    return None;
                }
            },
            way => {
                let length = self.fixed_length(value, &format!("'{way}'"))?;
                match way {
                    "every" => When::Interval(format!("R/{length}")),
                    _ => When::After(length),
                }
            }
        };
        self.workflow.schedule = Some(Schedule {
            when,
            timezone: None,
            exclusive: false,
        });
        None
    }

    /// A duration that is known at the deployment, as a text.
    fn fixed_length(&mut self, node: &Node, what: &str) -> Option<String> {
        let (problem, hint) = match self.length(node, what)? {
            Period::Expression(_) => (
                "an expression, and there is no data before an instance",
                "write a duration",
            ),
            Period::Fixed(length) if length.is_zero() => (
                "no time at all",
                "write a duration of at least a millisecond",
            ),
            Period::Fixed(length) => return Some(length.to_string()),
        };
        let message = format!("{what} is {problem}");
        self.error(node, codes::BAD_DURATION, message, hint.to_owned());
        None
    }

    fn start_on(&mut self, obj: Obj<'_>, node: &Node) -> Option<StartOn> {
        // Versions up to 1.0.3 read the whole event, and the examples do so still.
        let read = self.read_as(obj);
        let first = self.workflow.events.len();
        let (to, until) = self.strategy(node, "'on'", true, Sight::START)?;
        let starts = StartOn {
            to,
            until,
            read: read.unwrap_or(EventRead::Envelope),
        };
        let tested = starts.filters().filter(|filter| filter.is_tested());
        let tested: Vec<_> = tested.map(|filter| filter.event).collect();
        for (index, event) in self.workflow.events.iter_mut().enumerate().skip(first) {
            if let Some(filter) = &mut event.filter {
                filter.offers = tested.iter().any(|id| id.0 as usize == index);
            }
        }
        Some(starts)
    }
}
