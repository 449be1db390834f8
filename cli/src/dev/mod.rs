//! `swirl dev`: a folder's definitions, kept deployed; the activity of their instances, as log lines.

mod folder;
mod insight;
mod log;

pub use folder::Folder;
pub use insight::DevInsight;
pub use log::Log;
