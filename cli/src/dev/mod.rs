//! `swirl dev`: keeps a folder's definitions deployed, and logs the activity of their instances.

mod folder;
mod insight;
mod log;

pub use folder::Folder;
pub use insight::DevInsight;
pub use log::Log;
