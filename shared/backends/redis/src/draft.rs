//! A plan under construction: the conditions, the reads and the writes.

use swirl_ports::Lease;

use crate::snapshot::Snapshot;

/// A plan under construction.
pub(crate) struct Draft<'a> {
    pub scope: &'a str,
    pub compared: Vec<(String, Vec<u8>)>,
    pub read: Vec<String>,
    pub set: Vec<(String, Vec<u8>)>,
    pub gone: Vec<String>,
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

    pub fn own(&self, kind: &str) -> String {
        [kind, self.scope].concat()
    }

    pub fn compare(&mut self, field: &str, value: &[u8]) {
        self.compared.push((field.to_owned(), value.to_vec()));
    }

    pub fn compare_own(&mut self, kind: &str, value: &[u8]) {
        let field = self.own(kind);
        self.compared.push((field, value.to_vec()));
    }

    pub fn read_if(&mut self, is_needed: bool, field: &str) {
        if is_needed {
            self.read(field);
        }
    }

    /// Adds a field only once, even if several parts of a plan need it, since an end counts the existing fields.
    pub fn read(&mut self, field: &str) {
        let is_known = self.compared.iter().any(|(other, _)| other == field);
        if !is_known && !self.read.iter().any(|other| other == field) {
            self.read.push(field.to_owned());
        }
    }

    pub fn set(&mut self, field: &str, value: Vec<u8>) {
        self.set.push((field.to_owned(), value));
    }

    pub fn set_own(&mut self, kind: &str, value: Vec<u8>) {
        let field = self.own(kind);
        self.set.push((field, value));
    }

    pub fn remove_own(&mut self, kind: &str) {
        let field = self.own(kind);
        self.gone.push(field);
    }

    /// Guards the scope's lease and its marks (`m:`: revision, flags, stamp): nobody else has taken the scope, and its
    /// record is the one that was read. Where their stored texts aren't known, they can't be compared as a whole:
    /// returns the token that the lease must have, and the beginning of the marks.
    pub fn lease(&mut self, lease: &Lease, known: &Snapshot, rev: u64) -> Option<(String, String)> {
        let are_known = known.reread.is_some() || known.lease.is_some() && known.mark.is_some();
        if lease.is_taken() && !are_known {
            let field = self.own("l:");
            self.read.push(field);
            let mut begins = String::new();
            if known.recorded {
                let field = self.own("m:");
                self.read.push(field);
                begins = format!("{rev} ");
            } else {
                self.compare_own("m:", b"");
            }
            return Some((lease.token.to_string(), begins));
        }
        let held = known.lease.as_deref().unwrap_or_default();
        self.compare_own("l:", held.as_bytes());
        self.compare_own("m:", known.mark.as_deref().unwrap_or_default());
        None
    }
}
