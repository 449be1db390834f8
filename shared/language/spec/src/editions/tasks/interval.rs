//! The times at which a starting state may be entered (sections "Start Definition" and "Schedule Definition",
//! docs/language.md#decision-42 and #decision-100).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::schedule::Zone;
use swirl_model::workflow::{Schedule, When};

use super::Reader;
use crate::build::ctx::Obj;

impl Reader<'_, '_> {
    /// `start` of a state: its window, if it has one. `None` after a finding.
    pub fn start_definition(&mut self, node: &Node) -> Option<Option<Schedule>> {
        if node.as_bool() == Some(true) {
            let message = "'start' is an object; true is read as its default kind";
            let hint = "write {kind: default}".to_owned();
            self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
            return Some(None);
        }
        let obj = self.object(node, "'start'", &["kind", "type", "schedule"])?;
        let kinds = &["default", "scheduled"];
        match (self.kind(obj, "'start'", kinds)?, obj.get("schedule")) {
            ("scheduled", Some(node)) => self.schedule_of(node).map(Some),
            ("scheduled", None) => {
                self.missing(obj, "a start of kind 'scheduled'", &["schedule"]);
                None
            }
            (_, Some(node)) => {
                self.ignored(node, "schedule", "the start's kind is not 'scheduled'");
                Some(None)
            }
            (_, None) => Some(None),
        }
    }

    fn schedule_of(&mut self, node: &Node) -> Option<Schedule> {
        let node = match node.as_str() {
            Some(_) => node,
            None => {
                let obj: Obj<'_> = self.object(node, "'schedule'", &["interval"])?;
                let Some(node) = obj.get("interval") else {
                    self.missing(obj, "a schedule", &["interval"]);
                    return None;
                };
                node
            }
        };
        let when = self.window(node, &Zone::utc())?;
        Some(Schedule {
            exclusive: matches!(when, When::Window(_)),
            when,
            timezone: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{FlowId, When};

    use crate::editions::tasks::testing::workflow;

    #[test]
    fn windows_and_repetitions() {
        for (text, window) in [
            ("2024-01-01T00:00:00Z/2024-02-01T00:00:00Z", true),
            ("2024-01-01T00:00:00Z/P1Y2M10DT2H30M", true),
            ("P1D/2024-02-01T00:00:00Z", true),
            ("PT1H", true),
            ("R/PT1H", false),
        ] {
            let workflow = workflow(&format!(
                "tasks:\n- {{name: A, type: inject, start: {{kind: Scheduled, schedule: {{interval: \"{text}\"}}}}, end: {{kind: default}}}}\n"
            ));
            let schedule = workflow.schedule.unwrap();
            assert_eq!(matches!(schedule.when, When::Window(_)), window, "{text}");
            assert_eq!(schedule.exclusive, window, "{text}");
        }
    }

    #[test]
    fn a_branch_has_a_window_of_its_own() {
        let workflow = workflow(
            "tasks:\n- name: P\n  type: parallel\n  start: {kind: default}\n  branches:\n  - {name: b, tasks: [{name: B, type: inject, start: {kind: scheduled, schedule: {interval: PT1H}}, end: {kind: default}}]}\n  end: {kind: default}\n",
        );
        assert!(workflow.schedule.is_none());
        assert!(workflow[FlowId(1)].window.is_some());
    }
}
