//! The reason why an operator's action doesn't fit an instance as it is now.

use std::fmt;

use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, Status};

use crate::{Action, Error, Service};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    Unknown,
    /// The status doesn't allow it, with the reason.
    Status(String),
    /// This other instance now runs under the same key.
    KeyInUse {
        key: String,
        by: InstanceId,
    },
    /// It cannot be moved to the other version of its definition, with the reason.
    Misfit(String),
    /// There is no such version; the text is a full sentence.
    Version(String),
    /// Some of its work is under way and may end soon, with the reason.
    Busy(String),
}

impl Unfit {
    /// The code by which programs distinguish refusals.
    pub fn code(&self) -> &'static str {
        match self {
            Unfit::Unknown => "unknown-instance",
            Unfit::Status(_) => "wrong-status",
            Unfit::KeyInUse { .. } => "key-in-use",
            Unfit::Misfit(_) => "does-not-fit",
            Unfit::Version(_) => "unknown-workflow",
            Unfit::Busy(_) => "still-busy",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unknown => write!(f, "the instance is no longer there"),
            Unfit::Status(reason)
            | Unfit::Misfit(reason)
            | Unfit::Version(reason)
            | Unfit::Busy(reason) => write!(f, "{reason}"),
            Unfit::KeyInUse { key, by } => {
                const CHARS_MAX: usize = 100;
                let short: String = key.chars().take(CHARS_MAX).collect();
                let rest = if short.len() < key.len() { "…" } else { "" };
                write!(f, "instance {by} runs under the key '{short}{rest}' by now")
            }
        }
    }
}

impl Action {
    /// Whether the action lets a failed instance continue.
    pub fn revives(&self) -> bool {
        match self {
            Action::Retry | Action::Skip(_) | Action::Rerun(_) | Action::Edit { .. } => true,
            Action::Cancel | Action::Suspend | Action::Resume => false,
        }
    }

    /// The reason why the instance's status doesn't allow the action.
    pub fn rejection_reason(&self, status: Status, suspended: bool) -> Option<String> {
        let word = status.as_str();
        match self {
            _ if self.revives() && status != Status::Faulted => Some(format!(
                "only a faulted instance can be continued; this one is {word}"
            )),
            Action::Cancel | Action::Suspend | Action::Resume if status.ended() => {
                Some(format!("the instance has ended: it is {word}"))
            }
            Action::Suspend if suspended => Some("the instance is suspended already".to_owned()),
            Action::Resume if !suspended => Some("the instance isn't suspended".to_owned()),
            _ => None,
        }
    }
}

impl Service {
    /// Returns the reason why the action doesn't fit, or `None` if it does. A failed instance that may continue takes
    /// its key again.
    ///
    /// # Errors
    /// The store failed, or the definition cannot be read.
    pub async fn unfit(
        &self,
        instance: &Instance,
        action: &Action,
    ) -> Result<Option<Unfit>, Error> {
        let state = &instance.state;
        if let Some(reason) = action.rejection_reason(state.status, state.suspended) {
            return Ok(Some(Unfit::Status(reason)));
        }
        if let Some(reason) = self.refusal(instance, action).await? {
            return Ok(Some(Unfit::Status(reason)));
        }
        match action.revives() {
            true => self.unfit_for_key(instance).await,
            false => Ok(None),
        }
    }

    pub(crate) async fn unfit_for_key(&self, instance: &Instance) -> Result<Option<Unfit>, Error> {
        let by = self.key_in_use(instance).await?;
        Ok(by.map(|by| Unfit::KeyInUse {
            key: instance.header.instance_key.clone().unwrap_or_default(),
            by,
        }))
    }
}
