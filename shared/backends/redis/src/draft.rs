//! A plan under construction: the conditions, the reads and the writes.

use std::fmt;

use redis::{RedisWrite, ToRedisArgs};
use swirl_ports::Lease;

use crate::snapshot::Snapshot;

/// The name of a field of an instance's hash. It is only put together when it is written into a command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Field<'a> {
    Instance(&'static str),
    /// Of a scope, or of a fork by its whole name.
    Of(&'static str, &'a str),
    Fork(&'static str, &'a str, u32),
    Branch(&'static str, &'a str, u32, u32),
    Input(&'a str, &'a str),
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Instance(name) => f.write_str(name),
            Field::Of(kind, name) => {
                f.write_str(kind)?;
                f.write_str(name)
            }
            Field::Fork(kind, scope, fork) => write!(f, "{kind}{scope}.{fork}"),
            Field::Branch(kind, scope, fork, index) => write!(f, "{kind}{scope}.{fork}.{index}"),
            Field::Input(scope, number) => write!(f, "i:{scope}:{number}"),
        }
    }
}

impl ToRedisArgs for Field<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.write_arg_fmt(self);
    }
}

#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub scope: &'a str,
    /// Fields and their required values; empty means that the field must not exist. Those come last in the end.
    pub compared: Vec<(Field<'a>, &'a [u8])>,
    /// Fields whose current values are needed.
    pub read: Vec<Field<'a>>,
    pub set: Vec<(Field<'a>, Vec<u8>)>,
    pub gone: Vec<Field<'a>>,
}

impl<'a> Draft<'a> {
    pub fn new(scope: &'a str) -> Draft<'a> {
        Draft {
            scope,
            compared: Vec::with_capacity(10),
            read: Vec::with_capacity(12),
            set: Vec::with_capacity(8),
            gone: Vec::with_capacity(8),
        }
    }

    pub fn compare(&mut self, field: &'static str, value: &'a [u8]) {
        self.compared.push((Field::Instance(field), value));
    }

    pub fn compare_own(&mut self, kind: &'static str, value: Option<&'a [u8]>) {
        let field = Field::Of(kind, self.scope);
        self.compared.push((field, value.unwrap_or_default()));
    }

    pub fn read_if(&mut self, is_needed: bool, field: &'static str) {
        if is_needed {
            self.read(Field::Instance(field));
        }
    }

    /// Adds a field only once, even if several parts of a plan need it, since an end counts the existing fields.
    pub fn read(&mut self, field: Field<'a>) {
        let is_known = self.compared.iter().any(|(other, _)| *other == field);
        if !is_known && !self.read.contains(&field) {
            self.read.push(field);
        }
    }

    /// All comparisons are known, and fields to read follow.
    pub fn end_compared(&mut self) {
        self.compared.sort_by_key(|(_, value)| value.is_empty());
    }

    pub fn own(&self, kind: &'static str) -> Field<'a> {
        Field::Of(kind, self.scope)
    }

    /// The value that a field must have: empty if it must not exist, `None` if it isn't compared.
    pub fn required(&self, field: Field<'a>) -> Option<&'a [u8]> {
        let mut compared = self.compared.iter();
        let (_, value) = compared.find(|(other, _)| *other == field)?;
        Some(value)
    }

    pub fn is_absent(&self, field: Field<'a>) -> bool {
        self.required(field).is_some_and(<[u8]>::is_empty)
    }

    /// The number of fields that must not exist.
    pub fn absent(&self) -> usize {
        let compared = self.compared.iter();
        compared.filter(|(_, value)| value.is_empty()).count()
    }

    /// The position that the next field to read gets among all fields, from 1.
    pub fn next_place(&self) -> usize {
        self.compared.len() + self.read.len() + 1
    }

    /// The position of a field that is read.
    pub fn place(&self, field: Field<'a>) -> Option<usize> {
        let at = self.read.iter().position(|other| *other == field)?;
        Some(self.compared.len() + at + 1)
    }

    pub fn set(&mut self, field: &'static str, value: Vec<u8>) {
        self.set.push((Field::Instance(field), value));
    }

    pub fn set_own(&mut self, kind: &'static str, value: Vec<u8>) {
        self.set.push((Field::Of(kind, self.scope), value));
    }

    pub fn remove(&mut self, field: &'static str) {
        self.gone.push(Field::Instance(field));
    }

    pub fn remove_own(&mut self, kind: &'static str) {
        self.gone.push(Field::Of(kind, self.scope));
    }

    /// Writes a field of the scope, or removes it if it was there.
    pub fn put_own(&mut self, kind: &'static str, value: Option<Vec<u8>>, was_there: bool) {
        match value {
            Some(value) => self.set_own(kind, value),
            None if was_there => self.remove_own(kind),
            None => {}
        }
    }

    /// Guards the scope's lease and its marks (`m:`: revision, flags, stamp): nobody else has taken the scope, and its
    /// record is the one that was read. Where their stored texts aren't known, they can't be compared as a whole:
    /// returns the token that the lease must have, and the beginning of the marks.
    pub fn lease(
        &mut self,
        lease: &Lease,
        known: &'a Snapshot,
        rev: u64,
    ) -> Option<(String, String)> {
        let are_known = known.reread.is_some() || known.lease.is_some() && known.mark.is_some();
        if lease.is_taken() && !are_known {
            self.read.push(Field::Of("l:", self.scope));
            let mut begins = String::new();
            if known.recorded {
                self.read.push(Field::Of("m:", self.scope));
                begins = format!("{rev} ");
            } else {
                self.compare_own("m:", None);
            }
            return Some((lease.token.to_string(), begins));
        }
        self.compare_own("l:", known.lease.as_deref().map(str::as_bytes));
        self.compare_own("m:", known.mark.as_deref());
        None
    }
}
