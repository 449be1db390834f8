//! The folders of processes, and the end of everything that runs in them.
//!
//! All folders of a worker are in one folder of its own, which has a lock that the worker holds as long as it lives. A
//! process is found by its folder: it is the current folder, or the value of [`VARIABLE`]. So processes are found that
//! have left the group of their parent, or whose parent has ended, even after the worker has. Only a process that
//! changes both, or its user, gets away. Without `/proc` nothing is found, and only process groups are killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;

/// The variable that holds the path of a process's folder. Those that begin with `SWIRL_` are settings.
const VARIABLE: &str = "RUN_FOLDER";

const PREFIX: &str = "swirl-processes-";
const LOCK: &str = "swirl-processes.lock";

/// A folder of a worker is made, then locked. In this time it isn't taken for one that was left.
const MAKING: Duration = Duration::from_secs(60);

/// The end of killed processes is waited for: this often, and this long.
const ROUNDS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// A process that is just being replaced by another program has no variables for a moment, so what isn't found is
/// looked for once more after this time.
const MOMENT: Duration = Duration::from_millis(5);

/// Makes the folders of a worker's processes.
#[derive(Debug, Default)]
pub(super) struct Folders {
    own: Mutex<Option<Own>>,
}

#[derive(Debug)]
struct Own {
    folder: TempDir,
    _lock: File,
    /// It ends when its input is closed.
    _guard: Option<Child>,
}

impl Folders {
    /// Removes what killed workers have left.
    pub(super) fn sweep(within: &Path) {
        let Ok(entries) = fs::read_dir(within) else {
            return;
        };
        for folder in entries.flatten().map(|entry| entry.path()) {
            let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
            if name.starts_with(PREFIX.as_bytes()) && is_left(&folder) {
                tracing::info!("a worker has left {}, which is removed", folder.display());
                clear(&folder);
            }
        }
    }

    /// A new folder.
    ///
    /// # Errors
    /// It can't be made.
    pub(super) fn make(&self) -> io::Result<Folder> {
        let mut own = self
            .own
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let own = match &mut *own {
            // Somebody may clean up temporary files.
            Some(own) if own.folder.path().exists() => own,
            other => other.insert(Own::new()?),
        };
        let folder = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(own.folder.path())?;
        Ok(Folder(Some(folder.keep())))
    }
}

impl Own {
    fn new() -> io::Result<Own> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.try_lock()?;
        let guard = guard(folder.path());
        let guard = guard.map_err(|error| {
            tracing::warn!("processes go on if this worker is killed: `sh`: {error}");
        });
        Ok(Own {
            folder,
            _lock: lock,
            _guard: guard.ok(),
        })
    }
}

/// Whether the worker of a folder is gone.
fn is_left(folder: &Path) -> bool {
    // Another user's folder may contain anything.
    #[cfg(unix)]
    if !fs::symlink_metadata(folder).is_ok_and(|its| {
        let own = rustix::process::geteuid().as_raw();
        its.is_dir() && std::os::unix::fs::MetadataExt::uid(&its) == own
    }) {
        return false;
    }
    let Ok(lock) = File::open(folder.join(LOCK)) else {
        return false;
    };
    let made = lock.metadata().and_then(|metadata| metadata.modified());
    let age = made.ok().and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age > MAKING) && lock.try_lock().is_ok()
}

/// Ends what is in the folder when this process ends, however it does.
#[cfg(unix)]
fn guard(folder: &Path) -> io::Result<Child> {
    use std::process::{Command, Stdio};

    const SCRIPT: &str = r#"
trap '' HUP INT TERM
n='
'
cat > /dev/null
for round in 1 2 3; do
    for it in /proc/[0-9]*; do
        case "$(readlink "$it/cwd")$n$(tr '\0' '\n' < "$it/environ")" in
            "$0"/*|*"$n$1=$0"/*) kill -KILL "${it#/proc/}" ;;
        esac
    done
    rm -rf "$0" && [ "$round" -gt 1 ] && break
    sleep 1
done"#;
    let mut command = Command::new("sh");
    command
        .args(["-c", SCRIPT])
        .arg(folder)
        .arg(VARIABLE)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

#[cfg(not(unix))]
fn guard(_: &Path) -> io::Result<Child> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Runs a command in its folder.
pub(super) fn enter(command: &mut tokio::process::Command, folder: &Path) {
    command.current_dir(folder).env(VARIABLE, folder);
}

/// The folder of a process. When it is dropped, everything that runs in it is killed, and it is removed.
#[derive(Debug)]
pub(super) struct Folder(Option<PathBuf>);

impl Folder {
    pub(super) fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new("/"))
    }

    /// Waits until the folder is removed.
    pub(super) async fn close(mut self) {
        if let Some(path) = self.0.take() {
            let _ = tokio::task::spawn_blocking(move || clear(&path)).await;
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            std::thread::spawn(move || clear(&path));
        }
    }
}

/// Kills what runs in a folder, then removes it. A process may start others, or write, until it is dead.
fn clear(folder: &Path) {
    let mut failed = None;
    for _ in 0..ROUNDS {
        if !kill_within(folder) {
            std::thread::sleep(MOMENT);
            if kill_within(folder) {
                continue;
            }
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => failed = Some(error),
                _ => return,
            }
        }
        std::thread::sleep(PAUSE);
    }
    let reason = failed.map_or_else(
        || "its processes don't end".to_owned(),
        |error| error.to_string(),
    );
    tracing::warn!("{} can't be removed: {reason}", folder.display());
}

/// Returns whether there was any.
#[cfg(unix)]
fn kill_within(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else {
        return false;
    };
    let path = folder.as_os_str().as_encoded_bytes();
    let is_in = |text: &[u8]| {
        let rest = text.strip_prefix(path);
        // The kernel adds this to the path of a folder that is gone.
        rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..] | b" (deleted)"))
    };
    let mut found = false;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.parse().ok());
        let Some(id) = id.and_then(rustix::process::Pid::from_raw) else {
            continue;
        };
        let its = entry.path();
        let current = fs::read_link(its.join("cwd"));
        let is_here = current.is_ok_and(|current| is_in(current.as_os_str().as_encoded_bytes()));
        let is_ours = || {
            let variables = fs::read(its.join("environ")).unwrap_or_default();
            let mut variables = variables.split(|byte| *byte == 0);
            variables.any(|variable| {
                let value = variable.strip_prefix(VARIABLE.as_bytes());
                value
                    .and_then(|value| value.strip_prefix(b"="))
                    .is_some_and(is_in)
            })
        };
        if is_here || is_ours() {
            // It may have ended by now.
            found |= rustix::process::kill_process(id, rustix::process::Signal::KILL).is_ok();
        }
    }
    found
}

#[cfg(not(unix))]
fn kill_within(_: &Path) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use std::process::Command;
    use std::time::SystemTime;

    use super::*;

    /// A process that has left its group, and whose parent has ended.
    fn stray(folder: &Path) -> u32 {
        let file = folder.join("id");
        let mut command = Command::new("sh");
        command.current_dir(folder).env(VARIABLE, folder);
        command.args(["-c", "cd /; setsid sleep 600 > /dev/null & echo $! > $0"]);
        assert!(command.arg(&file).status().unwrap().success());
        let id = fs::read_to_string(&file).unwrap();
        let id = id.trim();
        let name = format!("/proc/{id}/comm");
        while fs::read_to_string(&name).unwrap() != "sleep\n" {
            std::thread::sleep(Duration::from_millis(1));
        }
        id.parse().unwrap()
    }

    fn is_alive(id: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    }

    fn end(what: &str, id: u32, folder: &Path) {
        let is_over = || !is_alive(id) && !folder.exists();
        for _ in 0..3_000 {
            if is_over() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{what}");
    }

    #[test]
    fn what_left_its_group_ends_with_its_folder() {
        let folders = Folders::default();
        let folder = folders.make().unwrap();
        let path = folder.path().to_owned();
        let id = stray(&path);
        assert!(is_alive(id));
        drop(folder);
        end("the stray has ended", id, &path);
        let own = folders.own.lock().unwrap();
        assert!(own.as_ref().unwrap().folder.path().exists());
    }

    #[test]
    fn a_killed_worker_leaves_nothing() {
        // A name that has another meaning as a pattern.
        let worker = tempfile::Builder::new().prefix("a.[*+").tempdir();
        let worker = worker.unwrap().keep();
        let folder = worker.join("run-1");
        fs::create_dir(&folder).unwrap();
        let id = stray(&folder);
        let mut guard = guard(&worker).unwrap();
        // Variables of this process may hold passwords.
        let variables = || fs::read_to_string(format!("/proc/{}/environ", guard.id())).unwrap();
        assert!(!variables().contains("CARGO"), "{}", variables());
        // The kernel closes it.
        drop(guard.stdin.take());
        end("the guard ends it", id, &worker);
        guard.wait().unwrap();
    }

    #[test]
    fn folders_without_a_worker_are_swept() {
        let all = tempfile::tempdir().unwrap();
        let make = |name: &str, age: Duration| {
            let folder = all.path().join(name);
            fs::create_dir_all(folder.join("run-1")).unwrap();
            let lock = File::create(folder.join(LOCK)).unwrap();
            lock.set_modified(SystemTime::now() - age).unwrap();
            (folder, lock)
        };
        let (left, _) = make("swirl-processes-left", MAKING * 2);
        let (young, _) = make("swirl-processes-young", Duration::ZERO);
        let (other, _) = make("other", MAKING * 2);
        let (held, lock) = make("swirl-processes-held", MAKING * 2);
        lock.lock().unwrap();
        let run = left.join("run-1");
        let id = stray(&run);
        Folders::sweep(all.path());
        end("what it left is gone", id, &left);
        for kept in [young, other, held] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }
}
