//! Actions that produce an event and wait for its answer (section "EventRef Definition").

use swirl_documents::source::Node;
use swirl_model::workflow::{ActionKind, EventAction};

use crate::build::ctx::Ctx;
use crate::build::references::EventUse;

impl Ctx<'_> {
    pub fn event_ref(&mut self, node: &Node) -> Option<ActionKind> {
        const NAMES: [(&str, &str); 3] = [
            ("produceEventRef", "triggerEventRef"),
            ("consumeEventRef", "resultEventRef"),
            ("consumeEventTimeout", "resultEventTimeout"),
        ];
        let known = &[
            "produceEventRef",
            "consumeEventRef",
            "consumeEventTimeout",
            "triggerEventRef",
            "resultEventRef",
            "resultEventTimeout",
            "data",
            "contextAttributes",
            "invoke",
        ];
        let obj = self.object(node, "an eventRef", known)?;
        let mut names = ["", "", ""];
        for (at, (here, other)) in NAMES.into_iter().enumerate() {
            names[at] = here;
            if let Some(node) = obj.get(other) {
                if obj.has(here) {
                    self.exclusive(obj, "an eventRef", &[here, other]);
                } else {
                    self.other_name(node, other, here);
                    names[at] = other;
                }
            }
        }
        let [produce, consume, timeout] = names;
        let detached = self.invoke_async(obj);
        let waits = self.timeout(obj, timeout);
        if let (Some(node), false) = (obj.get(timeout), obj.has(consume)) {
            self.ignored(node, timeout, "no event is waited for");
        }
        let consumed = obj
            .get(consume)
            .map(|node| self.event(node, &format!("'{consume}'"), EventUse::Consume));
        if let (Some(node), true) = (obj.get(consume), detached) {
            self.ignored(
                node,
                consume,
                "with 'invoke: async' nothing waits for the event",
            );
        }
        let produce = self.produce(obj, produce, "an eventRef")?;
        Some(ActionKind::Event(EventAction {
            produce: Some(produce),
            consume: match consumed {
                Some(event) => Some(event?).filter(|_| !detached),
                None => None,
            },
            timeout: waits,
            detached,
        }))
    }
}
