//! `swirl dev`: a folder's definitions, kept deployed; the activity of their instances, as log lines.

mod folder;
mod log;

pub use folder::Folder;
pub use log::Log;
