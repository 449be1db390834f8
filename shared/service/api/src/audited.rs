//! The entries that the actions of operators leave in the audit log.

use crate::words::words;

/// The entries of a route.
#[derive(Debug, Clone, Copy)]
pub struct Audit {
    pub kind: &'static Kind,
    /// The first one, unless the handler says that it was another.
    pub actions: &'static [Action],
}

words! {
    /// An action that leaves an entry.
    Action {
        Activate = "activate",
        Batch = "batch",
        BatchPause = "batch-pause",
        BatchResume = "batch-resume",
        BatchStop = "batch-stop",
        Cancel = "cancel",
        DeadLetterDrop = "dead-letter-drop",
        DeadLetterRetry = "dead-letter-retry",
        Delete = "delete",
        Deploy = "deploy",
        Edit = "edit",
        Migrate = "migrate",
        Rehearse = "rehearse",
        Remove = "remove",
        Rerun = "rerun",
        Resume = "resume",
        Retry = "retry",
        ScheduleBackfill = "schedule-backfill",
        ScheduleFire = "schedule-fire",
        SchedulePause = "schedule-pause",
        ScheduleResume = "schedule-resume",
        Skip = "skip",
        Suspend = "suspend",
        ViewRemove = "view-remove",
        ViewSave = "view-save",
    }
}

words! {
    /// The kind of object of an action.
    Kind {
        Batch = "batch",
        DeadLetter = "dead-letter",
        Definition = "definition",
        Instance = "instance",
        Schedule = "schedule",
        View = "view",
    }
}
