//! The index of search attributes, which reflects the instances' records.

use swirl_model::attribute::Attributes;
use swirl_model::ids::ScopeId;

use crate::key::{Key, Seq};
use crate::state::{Indexed, State};

impl State {
    /// Indexes the instance by the attributes in its root's record.
    pub fn index_attributes(&mut self, seq: Seq) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let root = inst.scope(&ScopeId::root());
        let values = root.map(|root| root.attributes.clone()).unwrap_or_default();
        let state = &mut inst.instance.state;
        if state.attributes == values {
            return;
        }
        let before = std::mem::replace(&mut state.attributes, values);
        for entry in entries(&before, seq) {
            self.attributes.remove(&entry);
        }
        self.restore_attributes(seq);
        self.touch(Key::State(seq));
    }

    /// Indexes the instance by its restored record.
    pub fn restore_attributes(&mut self, seq: Seq) {
        if let Some(inst) = self.instances.get(&seq) {
            let values = &inst.instance.state.attributes;
            self.attributes.extend(entries(values, seq));
        }
    }

    /// Called before the instance is removed.
    pub fn unindex_attributes(&mut self, seq: Seq) {
        if let Some(inst) = self.instances.get(&seq) {
            for entry in entries(&inst.instance.state.attributes, seq) {
                self.attributes.remove(&entry);
            }
        }
    }
}

fn entries(values: &Attributes, seq: Seq) -> impl Iterator<Item = Indexed> {
    let values = values.iter();
    values.map(move |(name, value)| (name.clone(), value.sortable(), seq))
}
