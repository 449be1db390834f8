//! `swirl dev`: a folder's definitions, kept deployed; what their instances do, as log lines.

mod folder;
mod log;

pub use folder::Folder;
pub use log::Log;
