//! Listings by creation or by a search attribute. The lock is released regularly, so that listing all instances doesn't
//! delay their execution.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use swirl_model::WorkflowError;
use swirl_model::attribute::Attribute;
use swirl_model::instance::Status;
use swirl_ports::{
    AttributeFilter, Bound, Counts, Error, Filter, Keep, Page, Result, Summary, Values,
    VersionCounts,
};

use crate::Embedded;
use crate::key::Seq;
use crate::state::{Indexed, Inst, State};

/// The number of instances that are examined while the lock is held.
const STEP: usize = 1000;
/// The default number of instances that are examined for one page.
const EXAMINED_MAX: usize = 100_000;

impl Embedded {
    pub(crate) fn listing(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        let mut found = Page::default();
        let mut from = filter.from.clone();
        let examined_max = match filter.examined_max {
            0 => EXAMINED_MAX,
            most => most,
        };
        while found.rows.len() < filter.limit {
            if found.examined >= examined_max {
                found.next = from;
                break;
            }
            let step = Step {
                filter,
                keep,
                from: from.as_deref(),
                limit: filter.limit - found.rows.len(),
                examined_max: STEP.min(examined_max - found.examined),
            };
            let page = self.read(|state| state.page(&step))??;
            found.examined += page.examined;
            found.rows.extend(page.rows);
            found.next.clone_from(&page.next);
            if page.next.is_none() {
                break;
            }
            from = page.next;
        }
        Ok(found)
    }

    pub(crate) fn count(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        let mut all = Counts::default();
        let mut each = vec![Counts::default(); workflows.len()];
        let mut next = Some(0);
        while let Some(first) = next {
            next = self.read(|state| {
                let mut some = state.instances.range(first..);
                for (_, inst) in some.by_ref().take(STEP) {
                    *all.of(inst.status()) += 1;
                    let workflow = &inst.instance.header.definition.workflow;
                    let places = workflows.iter().zip(&mut each);
                    for (_, counts) in places.filter(|(one, _)| *one == workflow) {
                        *counts.of(inst.status()) += 1;
                    }
                }
                some.next().map(|(seq, _)| *seq)
            })?;
        }
        Ok((all, each))
    }

    pub(crate) fn count_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        let mut all = VersionCounts {
            is_complete: true,
            ..VersionCounts::default()
        };
        let mut next = Some(0);
        while let Some(first) = next {
            next = self.read(|state| {
                let mut some = state.instances.range(first..);
                for (_, inst) in some.by_ref().take(STEP) {
                    let id = &inst.instance.header.definition;
                    let is_counted = matches!(inst.status(), Status::Running | Status::Faulted);
                    if is_counted && &*id.workflow == workflow {
                        let counts = all.versions.entry(id.version.clone()).or_default();
                        *counts.of(inst.status()) += 1;
                    }
                }
                some.next().map(|(seq, _)| *seq)
            })?;
        }
        Ok(all)
    }
}

/// The part of a listing that is examined while the lock is held.
struct Step<'a> {
    filter: &'a Filter,
    keep: Keep<'a>,
    from: Option<&'a str>,
    limit: usize,
    examined_max: usize,
}

impl State {
    fn page(&self, step: &Step<'_>) -> Result<Page> {
        match (&step.filter.ids, &step.filter.attribute) {
            (None, Some(attribute)) => self.page_by_attribute(step, attribute),
            _ => self.page_by_creation(step),
        }
    }

    fn page_by_creation(&self, step: &Step<'_>) -> Result<Page> {
        let before = match (step.from, &step.filter.after) {
            (Some(from), _) => read_cursor(from)?,
            (None, None) => Seq::MAX,
            (None, Some(id)) => {
                let seq = self.ids.get(id).copied();
                seq.ok_or_else(|| Error::UnknownPlace(id.to_string()))?
            }
        };
        let mut page = Page::default();
        let mut look = |seq: Seq, inst: &Inst| {
            step.look(inst, &mut page);
            let is_over = step.is_over(&page);
            page.next = is_over.then(|| cursor(seq));
            is_over
        };
        match &step.filter.ids {
            Some(ids) => {
                let named: BTreeSet<Seq> = ids
                    .iter()
                    .filter_map(|id| self.ids.get(id))
                    .copied()
                    .collect();
                let named = named.range(..before).rev();
                named
                    .filter_map(|seq| Some((*seq, self.instances.get(seq)?)))
                    .any(|(seq, inst)| look(seq, inst));
            }
            None => {
                let mut all = self.instances.range(..before).rev();
                all.any(|(seq, inst)| look(*seq, inst));
            }
        }
        Ok(page)
    }

    fn page_by_attribute(&self, step: &Step<'_>, wanted: &AttributeFilter) -> Result<Page> {
        let name = wanted.name.clone();
        let before = match step.from {
            None => None,
            Some(from) => {
                let parts = from.split_once('.').ok_or_else(|| unknown(from))?;
                Some((
                    name.clone(),
                    unhex(parts.1).ok_or_else(|| unknown(from))?,
                    read_cursor(parts.0)?,
                ))
            }
        };
        let least: Indexed = match &wanted.values {
            Values::Equal(value) => (name.clone(), value.sortable(), 0),
            Values::Prefix(prefix) => (name.clone(), Attribute::sortable_prefix(prefix), 0),
            Values::Range {
                from: Some(Bound { value, .. }),
                ..
            } => (name.clone(), value.sortable(), 0),
            Values::Range { .. } => (name.clone(), String::new(), 0),
        };
        let most = match (before, &wanted.values) {
            (Some(before), _) => Excluded(before),
            (None, Values::Equal(value)) => Included((name, value.sortable(), Seq::MAX)),
            (None, Values::Prefix(prefix)) => {
                let prefix = Attribute::sortable_prefix(prefix);
                Excluded((name, format!("{prefix}{}", char::MAX), Seq::MAX))
            }
            (
                None,
                Values::Range {
                    to: Some(Bound { value, .. }),
                    ..
                },
            ) => Included((name, value.sortable(), Seq::MAX)),
            (None, Values::Range { .. }) => {
                Excluded((format!("{name}\0").into(), String::new(), 0))
            }
        };
        let mut page = Page::default();
        // A cursor of another listing is out of range.
        let is_empty = match &most {
            Excluded(most) | Included(most) => *most < least,
            Unbounded => false,
        };
        if is_empty {
            return Ok(page);
        }
        for (_, value, seq) in self.attributes.range((Included(least), most)).rev() {
            if let Some(inst) = self.instances.get(seq) {
                step.look(inst, &mut page);
            }
            if step.is_over(&page) {
                page.next = Some(format!("{}.{}", cursor(*seq), hex(value)));
                break;
            }
        }
        Ok(page)
    }
}

impl Step<'_> {
    fn look(&self, inst: &Inst, page: &mut Page) {
        page.examined += 1;
        let (header, state) = (&inst.instance.header, &inst.instance.state);
        // Most instances have ended, and most listings are of others.
        let statuses = &self.filter.statuses;
        if !statuses.is_empty() && !statuses.contains(&state.status) {
            return;
        }
        let row = Summary {
            header: header.clone(),
            status: state.status,
            suspended: state.suspended,
            ended_at: state.ended_at,
            error: state.error.clone().map(WorkflowError::shortened),
            attributes: state.attributes.clone(),
        };
        if self.filter.passes(&row) && (self.keep)(&row) {
            page.rows.push(row);
        }
    }

    fn is_over(&self, page: &Page) -> bool {
        page.rows.len() >= self.limit || page.examined >= self.examined_max
    }
}

fn cursor(seq: Seq) -> String {
    format!("s{seq:x}")
}

fn read_cursor(text: &str) -> Result<Seq> {
    let number = text.strip_prefix('s');
    let number = number.and_then(|number| Seq::from_str_radix(number, 16).ok());
    number.ok_or_else(|| unknown(text))
}

fn unknown(cursor: &str) -> Error {
    Error::UnknownPlace(cursor.to_owned())
}

fn hex(text: &str) -> String {
    let digits = text.bytes().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

fn unhex(text: &str) -> Option<String> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<Vec<u8>>>()?;
    String::from_utf8(bytes).ok()
}
