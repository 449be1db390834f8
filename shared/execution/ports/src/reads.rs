//! What a store remembers of its reads, so that it needn't read the same again to write.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// From this number of entries on, those that nobody can ask for any more are removed, again when their number has
/// doubled. Few, since one of them may be large.
const SWEEP_MIN: usize = 16;

/// Stands for what a store remembers of a read. It does as long as a copy of the mark exists. It is optional and never
/// trusted: a write checks that what was read is still current.
#[derive(Clone, Default)]
pub struct ReadMark(Option<Arc<()>>);

impl fmt::Debug for ReadMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "remembered",
            None => "not remembered",
        })
    }
}

/// Marks don't affect the equality of what has them.
impl PartialEq for ReadMark {
    fn eq(&self, _: &ReadMark) -> bool {
        true
    }
}

impl Eq for ReadMark {}

/// The reads of one store.
pub struct Reads<T>(Mutex<Table<T>>);

struct Table<T> {
    /// By the address of the mark, which no other mark has while the entry is here.
    entries: HashMap<usize, (Weak<()>, T)>,
    sweep_at: usize,
}

impl<T> Default for Reads<T> {
    fn default() -> Reads<T> {
        Reads(Mutex::new(Table {
            entries: HashMap::new(),
            sweep_at: SWEEP_MIN,
        }))
    }
}

impl<T> Reads<T> {
    pub fn remember(&self, read: T) -> ReadMark {
        let mark = ReadMark(Some(Arc::default()));
        self.put(&mark, read);
        mark
    }

    /// Takes out what is remembered. Until it is put back, nothing is.
    pub fn take(&self, mark: &ReadMark) -> Option<T> {
        let (_, read) = self.lock().entries.remove(&address(mark)?)?;
        Some(read)
    }

    pub fn put(&self, mark: &ReadMark, read: T) {
        let Some(alive) = &mark.0 else { return };
        let mut table = self.lock();
        if table.entries.len() >= table.sweep_at {
            table
                .entries
                .retain(|_, (alive, _)| alive.strong_count() > 0);
            table.sweep_at = SWEEP_MIN.max(2 * table.entries.len());
        }
        let entry = (Arc::downgrade(alive), read);
        table.entries.insert(Arc::as_ptr(alive).addr(), entry);
    }

    /// Changes what is remembered, for example when a part of it isn't known any more.
    pub fn change(&self, mark: &ReadMark, change: impl FnOnce(&mut T)) {
        let Some(address) = address(mark) else { return };
        if let Some((_, read)) = self.lock().entries.get_mut(&address) {
            change(read);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(mark: &ReadMark) -> Option<usize> {
    Some(Arc::as_ptr(mark.0.as_ref()?).addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_remembered_as_long_as_its_mark() {
        let reads = Reads::default();
        let mark = reads.remember(1);
        reads.change(&mark.clone(), |read| *read = 2);
        assert_eq!((reads.take(&mark), reads.take(&mark)), (Some(2), None));
        reads.put(&mark, 3);
        let others: Vec<ReadMark> = (0..10).map(|read| reads.remember(read)).collect();
        for read in 0..10_000 {
            drop(reads.remember(read));
        }
        assert!(reads.lock().entries.len() <= 2 * (others.len() + 1));
        assert_eq!(reads.take(&mark), Some(3));
        assert_eq!(reads.take(&others[7]), Some(7));
        assert_eq!(reads.take(&ReadMark::default()), None);
        assert_eq!(Reads::<i32>::default().take(&others[6]), None);
    }
}
