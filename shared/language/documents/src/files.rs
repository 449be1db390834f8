//! Reads files that somebody names. A named pipe can block forever and a device never ends, so only regular files are
//! read, and pipes that a shell makes for a command: `swirl validate <(helm template .)`.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The largest file for which no other limit is given, in bytes.
pub const BYTES_MAX: usize = 256 << 20;

/// Where a process finds its own open files, by number.
const OPEN_FILES: [&str; 3] = ["/dev/fd/", "/proc/self/fd/", "/dev/stdin"];

/// Opens a file.
///
/// # Errors
/// It cannot be opened, or is neither a regular file nor one that this process was given open.
pub fn open(path: &Path) -> Result<File> {
    // Before it is opened, since that blocks already.
    let is_open = path
        .to_str()
        .is_some_and(|path| OPEN_FILES.iter().any(|open| path.starts_with(open)));
    if !is_open {
        let kind = std::fs::metadata(path).map_err(in_words)?;
        if kind.is_dir() {
            return Err(Error::other("it is a folder"));
        }
        if !kind.is_file() {
            return Err(Error::other("it is not a file, but a pipe or a device"));
        }
    }
    File::open(path).map_err(in_words)
}

/// The error without the number that the operating system has for it.
#[must_use]
pub fn in_words(error: Error) -> Error {
    if error.raw_os_error().is_none() {
        return error;
    }
    let text = error.to_string();
    let words = match error.kind() {
        ErrorKind::NotFound => "there is no such file",
        _ => text.split(" (os error").next().unwrap_or(&text),
    };
    Error::new(error.kind(), words)
}

/// Reads a file of at most this size.
///
/// # Errors
/// As [`open`], or it is larger.
pub fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Reads a file of text, of at most [`BYTES_MAX`].
///
/// # Errors
/// As [`read`], or if it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = read(path, BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"text");
        let refused = |path: &Path, limit| read(path, limit).unwrap_err().to_string();
        assert!(refused(&file, 3).contains("larger than 3 bytes"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [&pipe, Path::new("/dev/zero"), Path::new("/dev/full")] {
            assert!(refused(path, 4).contains("a pipe or a device"));
        }
        assert!(refused(folder.path(), 4).contains("folder"));
        assert_eq!(
            refused(&folder.path().join("none"), 4),
            "there is no such file"
        );
        assert_eq!(refused(&file.join("below"), 4), "Not a directory");
        // An open file has no name.
        use std::os::fd::AsRawFd;
        let open = std::fs::File::open(&file).unwrap();
        let path = format!("/proc/self/fd/{}", open.as_raw_fd());
        assert_eq!(read(Path::new(&path), 4).unwrap(), b"text");
    }
}
