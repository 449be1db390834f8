//! One file per page, or for a few that belong together.

pub mod audit;
pub mod batch_trial;
pub mod batches;
mod changes;
mod chosen;
mod columns;
pub mod compare;
pub mod definitions;
pub mod deploy;
pub mod events;
mod findings;
pub mod folder;
pub mod hints;
pub mod instance;
pub mod instances;
mod lateness;
pub mod letters;
mod occupied;
pub mod onwards;
pub mod overview;
mod panel;
pub mod provider;
pub mod rehearsal;
pub mod schedules;
mod search;
pub mod sign_in;
pub mod start;
pub mod system;
mod trend;
pub mod views;

use serde::Deserialize;

/// The word for the action of a form, in the address of the page that follows.
#[derive(Deserialize, Default)]
pub struct Done {
    #[serde(default)]
    pub done: Option<String>,
}
