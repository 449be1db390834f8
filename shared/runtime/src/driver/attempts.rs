//! Scopes that a process may have begun and not survived: each attempt is noted before it begins and struck out at its
//! end, so the remaining ones ended their process. After [`ATTEMPTS_MAX`] of them no worker tries again.
//!
//! Only computing counts: while it waits for an answer the attempt is struck out, so that a long call is not blamed for
//! the harm that others do to its process. For the same reason a scope that is suspected computes while no other
//! suspected scope of this process does.

use std::sync::Arc;

use futures::lock::{Mutex, OwnedMutexGuard};
use swirl_model::ids::ScopeRef;

use super::Driver;
use crate::Error;

/// How many attempts may end their process; the first one is not noted.
const ATTEMPTS_MAX: u32 = 5;
/// From this many attempts on a scope computes alone.
const SUSPECTED: u32 = 2;

/// Lets one suspected scope of this process compute at a time.
#[derive(Debug, Clone, Default)]
pub struct Suspects(Arc<Mutex<()>>);

/// An attempt that is noted.
pub(super) struct Attempt {
    _alone: Option<OwnedMutexGuard<()>>,
}

impl Driver {
    /// Before any computing of a scope. Does nothing for one that isn't suspected.
    ///
    /// # Errors
    /// [`Error::Attempts`]: it must not.
    pub(super) async fn begin_attempt(
        &self,
        scope: &ScopeRef,
        suspects: Option<&Suspects>,
    ) -> Result<Option<Attempt>, Error> {
        let Some(suspects) = suspects else {
            return Ok(None);
        };
        let mut count = self.store.attempt(scope).await?;
        let mut alone = None;
        if count >= SUSPECTED {
            self.store.attempted(scope, false).await?;
            alone = Some(suspects.0.clone().lock_owned().await);
            count = self.store.attempt(scope).await?;
        }
        if count >= ATTEMPTS_MAX {
            // The operator who resumes it may have fixed the cause: all attempts are free again.
            self.store.attempted(scope, true).await?;
            return Err(Error::Attempts { count });
        }
        Ok(Some(Attempt { _alone: alone }))
    }

    /// It has survived, or is going to wait.
    pub(super) async fn end_attempt(&self, scope: &ScopeRef, attempt: Option<Attempt>) {
        if attempt.is_some()
            && let Err(error) = self.store.attempted(scope, false).await
        {
            tracing::debug!(%error, "a finished attempt still counts");
        }
    }
}
