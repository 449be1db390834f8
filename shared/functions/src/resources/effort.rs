//! Limits for the documents of one definition, which decides how many there are, while their servers decide how long they
//! take.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Cause, FetchError, HttpOptions, shown_uri};
use crate::auth::Auth;

/// Shared by all fetches for a definition.
#[derive(Debug)]
pub(super) struct Effort {
    begun: Instant,
    time_max: Duration,
    count_max: usize,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    count: usize,
    /// By address and credentials.
    failed: Vec<(String, Option<Auth>, FetchError)>,
}

impl Effort {
    pub(super) fn new(options: &HttpOptions) -> Effort {
        Effort {
            begun: Instant::now(),
            time_max: options.total_time_max,
            count_max: options.total_count_max,
            spent: Mutex::default(),
        }
    }

    /// Begins a fetch, and returns the time that is left for it.
    ///
    /// # Errors
    /// It has failed before, or too much was fetched.
    pub(super) fn begin(&self, uri: &str, auth: Option<&Auth>) -> Result<Duration, FetchError> {
        let mut spent = self.spent();
        let mut failed = spent.failed.iter();
        if let Some((_, _, error)) =
            failed.find(|(known, with, _)| known == uri && with.as_ref() == auth)
        {
            return Err(error.clone());
        }
        let uri = shown_uri(uri);
        let refuse = |cause| Err(FetchError { uri, cause });
        let limit = self.time_max;
        let left = limit.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            return refuse(Cause::TotalTime { limit });
        }
        if spent.count == self.count_max {
            return refuse(Cause::TotalCount {
                limit: self.count_max,
            });
        }
        spent.count += 1;
        Ok(left)
    }

    /// It isn't tried again: each try may take as long.
    pub(super) fn failed(&self, uri: &str, auth: Option<&Auth>, error: &FetchError) {
        let entry = (uri.to_owned(), auth.cloned(), error.clone());
        self.spent().failed.push(entry);
    }

    fn spent(&self) -> std::sync::MutexGuard<'_, Spent> {
        let spent = self.spent.lock();
        spent.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
