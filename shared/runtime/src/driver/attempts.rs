//! Detects scopes that end the processes that drive them. Each attempt is recorded before it begins and removed at its
//! end, so the remaining ones ended their process. After [`ATTEMPTS_MAX`] of them no worker tries again.
//!
//! Only computing counts: while a scope waits for an answer its attempt is removed, so that a long call is not blamed
//! for a crash that others cause. For the same reason only one suspected scope of a process computes at a time.

use std::sync::Arc;

use futures::lock::{Mutex, OwnedMutexGuard};
use swirl_model::ids::ScopeRef;

use super::Driver;
use crate::Error;

/// The number of attempts that may end their process; the first one is not recorded.
const ATTEMPTS_MAX: u32 = 5;
/// From this many attempts on a scope computes alone.
const SUSPECTED: u32 = 2;

/// Lets one suspected scope of this process compute at a time.
#[derive(Debug, Clone, Default)]
pub struct Suspects(Arc<Mutex<()>>);

/// A recorded attempt.
pub(super) struct Attempt {
    _alone: Option<OwnedMutexGuard<()>>,
}

impl Driver {
    /// Called before a scope computes. Does nothing unless the scope is suspected.
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

    /// The process has survived it, or the scope is going to wait.
    pub(super) async fn end_attempt(&self, scope: &ScopeRef, attempt: Option<Attempt>) {
        if attempt.is_some()
            && let Err(error) = self.store.attempted(scope, false).await
        {
            tracing::debug!(%error, "a finished attempt still counts");
        }
    }
}
