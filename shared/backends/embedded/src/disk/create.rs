//! Creates a store.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::frame::sync_folder;
use super::place::{MARK, draft, new_store, open_place, tighten};

const MARK_TEXT: &str = "The records of this store are in the folder `records`. This file tells a store whose records \
                         are gone from a new one.\n";

/// Creates the records' folder if there is none. They are made next to their final place, and moved there when
/// complete. If the process dies meanwhile, it leaves no folder that cannot be opened.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    let (place, mark) = (open_place(folder), folder.join(MARK));
    if !place.exists() {
        if mark.exists() {
            // The check of the files reports that everything is missing.
            return Ok(());
        }
        let draft = draft(folder)?;
        new_store(&draft, 0, |_| Ok(()))?;
        std::fs::rename(&draft, &place)?;
        sync_folder(folder)?;
    }
    tighten(&place)?;
    if !mark.exists() {
        let mut file = File::create(&mark)?;
        file.write_all(MARK_TEXT.as_bytes())?;
        file.sync_all()?;
        sync_folder(folder)?;
    }
    Ok(())
}
