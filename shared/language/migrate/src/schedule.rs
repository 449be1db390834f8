//! The starting state, and the times at which instances are created by schedule.

use swirl_model::Data;
use swirl_model::workflow::{When, Workflow};

use super::writer::{SetIf, Writer};

impl Writer<'_> {
    pub fn start(&mut self, root: &mut Data) {
        let workflow = self.workflow;
        let Some(flow) = workflow.flows.first() else {
            return;
        };
        if flow.window.is_some() {
            self.cannot("instances may begin in a window of time only");
        }
        let first = Data::string(&*workflow[workflow[Workflow::ROOT].start].name);
        let Some(schedule) = &workflow.schedule else {
            root.set("start", first);
            return;
        };
        self.at = self.has_start(flow.start).then_some(flow.start);
        self.cannot_if(
            schedule.exclusive && !matches!(schedule.when, When::Window(_)),
            "with 'directInvoke: deny' the schedule alone starts instances; in 0.8 others may be started too",
        );
        let mut written = Data::object();
        match &schedule.when {
            When::Interval(text) => written.set("interval", Data::string(text.as_str())),
            When::Cron {
                expression,
                valid_until,
            } => {
                let mut cron = Data::object();
                cron.set("expression", Data::string(expression.as_str()));
                cron.set_if("validUntil", valid_until.as_deref().map(Data::string));
                written.set("cron", cron);
            }
            When::After(_) => {
                self.cannot("each start follows the end of an instance; 0.8 has no such schedule");
            }
            When::Window(_) => {
                self.cannot(
                    "instances may be started in a window of time only; in 0.8 at any time",
                );
            }
        }
        self.at = None;
        written.set_if("timezone", schedule.timezone.as_deref().map(Data::string));
        let mut start = Data::object();
        start.set("stateName", first);
        start.set("schedule", written);
        root.set("start", start);
    }
}
