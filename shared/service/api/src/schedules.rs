//! The schedules of workflows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::audited::{self, Action};
use crate::client::pages;
use crate::endpoint::{Endpoint, Method, Nothing, Reason};
use crate::instant::Instant;
use crate::words::words;

pub static LIST: Endpoint<Nothing, ListQuery, Nothing, Schedules> =
    Endpoint::new(Method::Get, "/api/v1/schedules", Need::Read)
        .named(
            "listSchedules",
            "Definitions",
            "The schedules of the latest versions, with what they start next.",
        )
        .answers(200, "The schedules.")
        .refuses(&[400]);

pub static PAUSE: Endpoint<Workflow, Reason, Nothing, PausedSchedule> = Endpoint::new(
    Method::Post,
    "/api/v1/workflows/{id}/schedule/pause",
    Need::Operate,
)
.named(
    "pauseSchedule",
    "Definitions",
    "Pauses the schedule of a workflow, in all versions, until it is resumed.",
)
.audited(&audited::Kind::Schedule, &[Action::SchedulePause])
.repeatable()
.answers(200, "The schedule's new status.")
.refuses(&[404, 409]);

pub static RESUME: Endpoint<Workflow, Reason, Nothing, PausedSchedule> = Endpoint::new(
    Method::Post,
    "/api/v1/workflows/{id}/schedule/resume",
    Need::Operate,
)
.named(
    "resumeSchedule",
    "Definitions",
    "Resumes the schedule of a workflow; starts that it missed meanwhile are not caught up.",
)
.audited(&audited::Kind::Schedule, &[Action::ScheduleResume])
.repeatable()
.answers(200, "The schedule's new status.")
.refuses(&[404, 409]);

pub static FIRE: Endpoint<Workflow, Reason, Nothing, Started> = Endpoint::new(
    Method::Post,
    "/api/v1/workflows/{id}/schedule/fire",
    Need::Operate,
)
.named(
    "fireSchedule",
    "Definitions",
    "Starts an instance now, in addition to those of the schedule, even while it is paused.",
)
.audited(&audited::Kind::Schedule, &[Action::ScheduleFire])
.keyed("The same key gives the same instance.")
.answers(200, "It was started before with the same key.")
.located()
.answers(201, "It is started.")
.located()
.refuses(&[404, 409]);

pub static BACKFILL: Endpoint<Workflow, Reason, Backfill, Backfilled> = Endpoint::new(
    Method::Post,
    "/api/v1/workflows/{id}/schedule/backfill",
    Need::Operate,
)
.named(
    "backfillSchedule",
    "Definitions",
    "Starts the instances that the schedule had at or after 'from' and before 'to'. An instance that was started for an \
     instant isn't started again.",
)
.audited(&audited::Kind::Schedule, &[Action::ScheduleBackfill])
.repeatable()
.takes(
    4 << 10,
    true,
    r#"{"from": "2026-01-31T00:00:00Z", "to": ..., "dryRun": true}"#,
)
.answers(200, "The instances that were started, or would be: at most 1000.")
.refuses(&[400, 404, 409]);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Workflow {
    /// The workflow's id.
    pub id: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many of the next starts.
    #[schemars(range(min = 1, max = 100), extend("default" = 3))]
    pub next: Option<u32>,
    /// Where to go on: 'next' of another page.
    pub after: Option<String>,
    /// How many at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Schedules {
    pub schedules: Vec<Schedule>,
    /// There is nothing beyond this page.
    pub complete: bool,
    /// For 'after', while there is more.
    pub next: Option<String>,
}

pages!(Schedules.schedules, ListQuery);

words! {
    /// What a schedule goes by.
    Kind {
        Cron = "cron",
        Interval = "interval",
        After = "after",
        Window = "window",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub workflow: String,
    pub version: String,
    pub kind: Kind,
    /// As written in the definition.
    pub schedule: String,
    pub timezone: Option<String>,
    pub paused: bool,
    /// The workflow begins with events: its schedule starts nothing.
    pub by_events: bool,
    /// The next starts, soonest first, paused or not.
    pub next: Vec<Instant>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PausedSchedule {
    pub id: String,
    pub paused: bool,
}

/// An instance that was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    pub id: String,
    pub new: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Backfill {
    #[schemars(extend("format" = "date-time"))]
    pub from: String,
    /// Not in the future.
    #[schemars(extend("format" = "date-time"))]
    pub to: String,
    /// Returns the instances that would be started, and starts nothing.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Backfilled {
    pub workflow: String,
    pub dry_run: bool,
    pub starts: Vec<PlannedStart>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct PlannedStart {
    /// Its instant in the schedule.
    pub at: Instant,
    /// The instance.
    pub id: String,
    /// It did not exist before.
    pub new: bool,
}
