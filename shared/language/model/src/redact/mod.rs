//! Removes the values of secrets from the answers of services before they are stored or shown.
//!
//! A service may echo its request: in an error's message, or in a result. It may do so in another form, so a value is
//! found also as it is written in JSON (escaped once or more often), in URLs and forms, in HTML, in Base64 (also of a
//! longer text that holds it, such as `user:password`, and in lines), in hexadecimal digits (also `de:ad:be:ef`), and
//! read as Latin-1. A secret that was turned into something else, such as a hash, cannot be recognised.

mod forms;
mod pattern;

use std::borrow::Cow;
use std::sync::Arc;

use jaq_json::Val;

use crate::data::{Data, text as value};
use crate::error::WorkflowError;
use pattern::{Pattern, Search};

/// The text that replaces a secret.
pub const CUT: &str = "***";

/// The minimum length, in characters, of values that are removed. Removing shorter values would reveal where they occur
/// and damage other text.
const CHARS_MIN: usize = 4;

/// The values of some secrets, prepared for searching.
#[derive(Default)]
pub struct Redactor {
    values: Vec<String>,
    patterns: Vec<Pattern>,
    /// Patterns that may begin with a byte.
    by_byte: Vec<Vec<u32>>,
}

impl Redactor {
    pub fn new<T: AsRef<str>>(secrets: impl IntoIterator<Item = T>) -> Redactor {
        let mut values: Vec<String> = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref();
            let is_known = values.iter().any(|value| value == secret);
            if secret.chars().count() >= CHARS_MIN && !is_known {
                values.push(secret.to_owned());
            }
        }
        if values.is_empty() {
            return Redactor::default();
        }
        let patterns: Vec<Pattern> = values
            .iter()
            .flat_map(|value| forms::patterns(value))
            .collect();
        let mut by_byte = vec![Vec::new(); 256];
        for (index, pattern) in patterns.iter().enumerate() {
            for byte in pattern.first_bytes() {
                by_byte[usize::from(byte)].push(index as u32);
            }
        }
        Redactor {
            values,
            patterns,
            by_byte,
        }
    }

    /// For the texts and numbers in an object of secrets.
    pub fn of(secrets: &Data) -> Redactor {
        let mut texts = Vec::new();
        leaves(&secrets.0, &mut texts);
        Redactor::new(texts)
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values themselves. They must never be logged or stored.
    pub fn expose(&self) -> &[String] {
        &self.values
    }

    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(mut found) = self.next(text, 0, 0) else {
            return Cow::Borrowed(text);
        };
        let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
        loop {
            clean.push_str(&text[done..found.0]);
            clean.push_str(CUT);
            done = found.1;
            match self.next(text, done, done) {
                Some(next) => found = next,
                None => break,
            }
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }

    /// All texts in it, names of members too, and numbers that are a secret.
    pub fn data(&self, data: Data) -> Data {
        match self.is_empty() {
            true => data,
            false => self.val(&data.0).map_or(data, Data),
        }
    }

    /// An error in the form that is shown: its name, code and message.
    pub fn error(&self, error: &mut WorkflowError) {
        self.clean(&mut error.name);
        error.code.iter_mut().for_each(|code| self.clean(code));
        self.message(error);
    }

    /// An error's message alone: handlers match by its name and code.
    pub fn message(&self, error: &mut WorkflowError) {
        self.clean(&mut error.message);
    }

    fn clean(&self, text: &mut String) {
        if !self.is_empty()
            && let Cow::Owned(cleaned) = self.text(text)
        {
            *text = cleaned;
        }
    }

    /// The next place at or after `from` to cut out. It may reach back, but not beyond `floor`.
    fn next(&self, text: &str, from: usize, floor: usize) -> Option<(usize, usize)> {
        if self.is_empty() {
            return None;
        }
        let mut search = Search::new(text, floor);
        let found = (from..text.len()).find_map(|at| self.longest(&mut search, at));
        let (mut start, mut end) = found?;
        // Another secret may begin in this one and end after it.
        let mut at = start + 1;
        while at < end {
            if let Some((also, later)) = self.longest(&mut search, at) {
                (start, end) = (start.min(also), end.max(later));
            }
            at += 1;
        }
        Some((start, end))
    }

    fn longest(&self, search: &mut Search<'_>, at: usize) -> Option<(usize, usize)> {
        let candidates = &self.by_byte[usize::from(search.text[at])];
        let found = candidates.iter().filter_map(|index| {
            let pattern = &self.patterns[*index as usize];
            pattern.matches(search, at)
        });
        found.max_by_key(|(_, end)| *end)
    }

    /// Whether a number is a secret, with any sign and any number of zeros at its end.
    fn is_number(&self, number: &str) -> bool {
        let plain = number.trim_start_matches('-');
        let size = plain.parse::<f64>().ok();
        self.values.iter().any(|value| {
            let value = value.trim_start_matches(['-', '+']);
            value == plain || size.is_some() && value.parse::<f64>().ok() == size
        })
    }

    /// `None`: there is nothing to cut out.
    fn val(&self, val: &Val) -> Option<Val> {
        match val {
            Val::Obj(members) => {
                let mut changed = None;
                for (key, member) in members.iter() {
                    let (key_cut, member_cut) = (self.val(key), self.val(member));
                    if key_cut.is_some() || member_cut.is_some() {
                        let map = changed.get_or_insert_with(|| (**members).clone());
                        let member = member_cut.unwrap_or_else(|| member.clone());
                        match key_cut {
                            Some(cut) => {
                                map.shift_remove(key);
                                map.insert(cut, member)
                            }
                            None => map.insert(key.clone(), member),
                        };
                    }
                }
                changed.map(|map| Val::Obj(Arc::new(map)))
            }
            Val::Arr(items) => {
                let mut changed = None;
                for (index, item) in items.iter().enumerate() {
                    if let Some(cut) = self.val(item) {
                        changed.get_or_insert_with(|| (**items).clone())[index] = cut;
                    }
                }
                changed.map(|items| Val::Arr(Arc::new(items)))
            }
            Val::Null | Val::Bool(_) => None,
            other => {
                let data = Data(other.clone());
                let Some(text) = data.as_str() else {
                    return self.is_number(&data.to_text()).then(|| value(CUT));
                };
                match self.text(text) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(cut) => Some(value(&cut)),
                }
            }
        }
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.values.len())
    }
}

fn leaves(val: &Val, texts: &mut Vec<String>) {
    match val {
        Val::Obj(members) => members.iter().for_each(|(_, member)| leaves(member, texts)),
        Val::Arr(items) => items.iter().for_each(|item| leaves(item, texts)),
        Val::Null | Val::Bool(_) => {}
        other => texts.push(Data(other.clone()).to_text()),
    }
}

#[cfg(test)]
mod tests;
