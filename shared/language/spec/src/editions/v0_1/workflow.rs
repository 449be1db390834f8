//! The top level, and the states of a flow (sections "Workflow Definition", "State Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_documents::suggest;
use swirl_model::Data;
use swirl_model::workflow::{FlowId, StateId, Version};

use super::Reader;
use crate::build::ctx::{Obj, StateHead};

/// Names of the edition in later editions. They were read when the edition was recognised.
pub(super) const EDITION: [&str; 2] = ["specVersion", "schemaVersion"];

/// Properties that are read at the top level in all drafts.
pub(super) const FURTHER: [&str; 5] = ["id", "description", "version", "starts-at", "metadata"];

impl Reader<'_, '_> {
    pub fn workflow(&mut self, root: &Node) {
        if root.members().is_none() {
            self.ctx
                .wrong_type(root, "a workflow definition", "an object");
            return;
        }
        let root = Obj { node: root };
        self.identity(root);
        self.version(root);
        self.ctx.workflow.constants = Data::object();
        self.ctx.workflow.metadata = self.metadata(root);
        self.exec_status(root);
        self.triggers(root);
        let Some(states) = self.ctx.need_list(root, "a workflow definition", "states") else {
            return;
        };
        self.flow(root, "the workflow", states);
        self.ctx.check_custom_types();
    }

    /// Without an id the name identifies the workflow (docs/language.md#decision-50).
    fn identity(&mut self, root: Obj<'_>) {
        let name = match root.get("name") {
            Some(node) => self.ctx.text(node, "'name'"),
            None => {
                self.ctx.missing(root, "a workflow definition", &["name"]);
                None
            }
        };
        let id = root.get("id").and_then(|node| self.ctx.text(node, "'id'"));
        for (text, key) in [(&name, "name"), (&id, "id")] {
            if let (Some(text), Some(node)) = (text, root.get(key)) {
                self.ctx.check_id(node, &format!("'{key}'"), text);
            }
        }
        match root.get("id") {
            Some(node) if !self.draft.properties.contains(&"id") => {
                self.other_property(node, "id", "workflows go by their 'name' here");
            }
            None if self.draft.properties.contains(&"id") && name.is_some() => {
                let message = "the workflow has no 'id': it goes by its name";
                let hint = "add 'id'".to_owned();
                self.ctx
                    .warn(root.node, codes::MISSING_PROPERTY, message, hint);
            }
            _ => {}
        }
        self.ctx.workflow.id = id.or_else(|| name.clone()).unwrap_or_default();
        self.ctx.workflow.name = name;
        self.ctx.workflow.description = self.ctx.description(root);
    }

    fn version(&mut self, root: Obj<'_>) {
        for name in ["schema-version", "specVersion", "schemaVersion"] {
            if let Some(node) = root.get(name) {
                self.ctx.text(node, &format!("'{name}'"));
            }
        }
        let Some(node) = root.get("version") else {
            return;
        };
        if node.as_str() == Some("") {
            let message = "'version' is empty, and is read as not given";
            let hint = "write major.minor.patch, such as '1.0.0'".to_owned();
            self.ctx
                .warn(node, codes::VERSION_NOT_SEMVER, message, hint);
            return;
        }
        let Some(text) = self.ctx.text(node, "'version'") else {
            return;
        };
        self.ctx.check_id(node, "'version'", &text);
        if semver::Version::parse(&text).is_err() {
            let message = format!("the version '{text}' is not a semantic version");
            let hint = "write major.minor.patch, such as '1.0.0'".to_owned();
            self.ctx
                .warn(node, codes::VERSION_NOT_SEMVER, message, hint);
        }
        self.ctx.workflow.version = Version::Literal(text);
    }

    /// Top-level properties that the draft doesn't define are kept as metadata (docs/language.md#decision-1).
    fn metadata(&mut self, root: Obj<'_>) -> Data {
        let known = self.draft.properties;
        let mut metadata = self.ctx.metadata(root);
        for member in root.node.members().unwrap_or_default() {
            let key = member.key();
            if known.contains(&key) || FURTHER.contains(&key) || EDITION.contains(&key) {
                continue;
            }
            if let Some(best) = suggest::did_you_mean(key, known.iter().copied()) {
                let message = format!("'{key}' is kept as additional information only");
                let hint = format!("did you mean '{best}'?");
                self.ctx
                    .warn(member.value(), codes::ADDITIONAL_PROPERTY, message, hint);
            }
            if metadata.get(key).is_none() {
                metadata.set(key, member.value().to_data());
            }
        }
        metadata
    }

    /// Has no effect on how a workflow runs, but is kept as information.
    fn exec_status(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("exec-status") else {
            return;
        };
        let (here, there) = (self.draft.exec_status, self.draft.sibling().exec_status);
        if let Some(word) = self.word_of(node, "'exec-status'", here, there) {
            let metadata = &mut self.ctx.workflow.metadata;
            metadata.set("exec-status", Data::string(word));
        }
    }

    /// Reads the states in `obj`, which is the workflow or a branch, as a flow.
    pub fn flow(&mut self, obj: Obj<'_>, what: &str, items: &[Node]) -> FlowId {
        let id = self.ctx.enter_flow();
        if items.is_empty() {
            let node = obj.get("states").unwrap_or(obj.node);
            let message = format!("'states' of {what} is empty: at least one state is required");
            let hint = "add a state".to_owned();
            self.ctx.error(node, codes::EMPTY_LIST, message, hint);
        }
        for item in items {
            self.head(item);
        }
        let states = self.ctx.states_of_flow();
        for (id, item) in states.iter().zip(items) {
            self.ctx.enter_state(*id);
            let state = self.state(item);
            self.ctx.put_state(*id, state);
        }
        let start = self.start(obj, what, items, &states);
        let first = states.first().copied().unwrap_or(StateId(0));
        if let Some(start) = start {
            self.ctx.check_graph(start);
        }
        self.ctx.leave_flow(start.unwrap_or(first));
        id
    }

    fn head(&mut self, node: &Node) {
        let text = |name: &str| node.get(name).and_then(Node::as_str);
        let kind = text("type").unwrap_or_default();
        let head = StateHead {
            name: text("name").unwrap_or_default().to_owned(),
            flow: self.ctx.flow(),
            location: self.ctx.location(node),
            is_event: kind.eq_ignore_ascii_case("event"),
            mark: None,
            used_for_compensation: false,
            compensated_by: None,
        };
        self.ctx.add_state(node, head);
    }

    /// The flow's starting state: named in `starts-at`, or marked with `start: true`.
    fn start(
        &mut self,
        obj: Obj<'_>,
        what: &str,
        items: &[Node],
        states: &[StateId],
    ) -> Option<StateId> {
        let marked = self.marked(items, states);
        if let Some(node) = obj.get("starts-at") {
            if self.draft.start_is_marked {
                self.other_property(node, "starts-at", "set 'start: true' in that state");
            }
            let location = self.ctx.location(node);
            self.ctx.set_start_location(location);
            return self.ctx.state_ref(node, "'starts-at'");
        }
        if let [(state, _)] = marked.as_slice() {
            return Some(*state);
        }
        if items.is_empty() {
            return None;
        }
        let hint = match self.draft.start_is_marked {
            true => "set 'start: true' in the first state",
            false => "add 'starts-at' with the name of the first state",
        };
        let (node, message) = match marked.get(1) {
            Some((_, second)) => (*second, format!("{what} has more than one starting state")),
            None => (obj.node, format!("{what} does not name its starting state")),
        };
        let code = match marked.is_empty() {
            true => codes::MISSING_PROPERTY,
            false => codes::EXCLUSIVE_PROPERTIES,
        };
        self.ctx.error(node, code, message, hint.to_owned());
        None
    }

    /// The states with `start: true`, and the location of that.
    fn marked<'n>(&mut self, items: &'n [Node], states: &[StateId]) -> Vec<(StateId, &'n Node)> {
        let mut marked = Vec::new();
        for (id, item) in states.iter().zip(items) {
            let Some(node) = item.get("start") else {
                continue;
            };
            let is_marked = self.flag(Obj { node: item }, "start", false);
            if !self.draft.start_is_marked {
                self.other_property(node, "start", "name the state in 'starts-at'");
            }
            if is_marked {
                marked.push((*id, node));
            }
        }
        marked
    }
}
