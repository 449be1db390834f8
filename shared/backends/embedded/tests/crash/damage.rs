//! Damaged files: whatever was acknowledged is there, or opening is refused.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use futures::future::join_all;
use swirl_embedded::{Embedded, OpenError, Options, raw};
use swirl_model::Data;
use swirl_ports::{ExecutionStore, InstanceRecords};

use super::{new, step};

/// The number of random damages. More, for a long run: 500.
const DAMAGES: &str = "SWIRL_TEST_DAMAGES";

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn options(log_bytes: u64) -> Options {
    Options {
        log_bytes,
        ..Options::default()
    }
}

fn accepting_loss() -> Options {
    Options {
        accept_loss: true,
        ..Options::default()
    }
}

/// Makes a store of instances that have each committed once, in many changes.
fn fill(folder: &Path, instances: usize, at_once: usize, log_bytes: u64) {
    let store = Embedded::open(folder, options(log_bytes)).unwrap();
    let ids: Vec<String> = (0..instances).map(|n| format!("i{n}")).collect();
    let load = Data::string("x".repeat(300));
    block_on(async {
        for ids in ids.chunks(at_once) {
            join_all(ids.iter().map(async |id| {
                store.create(new(id)).await.unwrap();
                step(&store, id, 1, &load).await.unwrap();
            }))
            .await;
        }
    });
}

fn files(folder: &Path) -> Files {
    let entries = std::fs::read_dir(folder.join("records")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

fn restore(folder: &Path, files: &Files) {
    std::fs::remove_dir_all(folder.join("records")).unwrap();
    std::fs::create_dir(folder.join("records")).unwrap();
    for (path, bytes) in files {
        std::fs::write(path, bytes).unwrap();
    }
}

/// All records but the counter, which every opening changes.
fn content(folder: &Path) -> Vec<(String, String)> {
    let mut records = raw::records(folder).unwrap();
    records.retain(|(key, _)| !key.starts_with("counter/"));
    records
}

/// What is wrong, if the folder can't be opened.
fn refused(folder: &Path) -> Option<String> {
    match Embedded::open(folder, Options::default()) {
        Ok(_) => None,
        Err(error @ OpenError::Damaged { .. }) => Some(error.to_string()),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_byte_is_protected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Two logs and a base with records.
    fill(folder, 8, 2, 2_000);
    let whole = files(folder);
    let has = |kind: &str| {
        whole
            .keys()
            .any(|path| path.extension().is_some_and(|it| it == kind))
    };
    assert!(has("base") && has("log"), "{:?}", whole.keys());
    for (path, bytes) in &whole {
        // Every byte of the first frames and of short files, and some of the rest.
        let places =
            (0..bytes.len()).filter(|at| *at < 300 || at % 97 == 0 || at + 40 > bytes.len());
        for at in places {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(path, &damaged).unwrap();
            let error = refused(folder);
            let error =
                error.unwrap_or_else(|| panic!("byte {at} of {} is silent", path.display()));
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(error.contains(name), "{error}");
            assert!(error.contains("--accept-loss"), "{error}");
        }
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(refused(folder), None);
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Damages one file. Returns what was done.
fn damage(files: &Files, numbers: &mut Numbers) -> String {
    let (path, bytes) = files.iter().nth(numbers.below(files.len())).unwrap();
    let (mut damaged, size) = (bytes.clone(), bytes.len());
    let at = numbers.below(size);
    let end = (at + 1 + numbers.below(4_096)).min(size);
    let what = match numbers.below(9) {
        0 | 1 => {
            damaged[at] ^= 1 << numbers.below(8);
            format!("bit of byte {at}")
        }
        2 => {
            damaged[at..end].fill(0);
            format!("zeros at {at}..{end}")
        }
        3 => {
            damaged[at..end].fill_with(|| numbers.below(256) as u8);
            format!("noise at {at}..{end}")
        }
        4 => {
            damaged.truncate(at);
            format!("cut at {at}")
        }
        5 => {
            damaged[at..].fill(0);
            format!("zeros from {at}")
        }
        6 => {
            damaged.drain(at..end);
            format!("without {at}..{end}")
        }
        7 => {
            damaged.extend(bytes[at..end].to_vec());
            format!("{at}..{end} again at the end")
        }
        _ => {
            std::fs::remove_file(path).unwrap();
            return format!("{} removed", path.display());
        }
    };
    std::fs::write(path, damaged).unwrap();
    format!("{}: {what}", path.display())
}

#[test]
fn no_damage_is_silent() {
    let damages = std::env::var(DAMAGES).ok().and_then(|n| n.parse().ok());
    let (damages, instances) = (damages.unwrap_or(25), 1_000);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(folder, instances, 20, 100_000);
    let (whole, expected) = (files(folder), content(folder));
    assert!(whole.len() >= 5, "{:?}", whole.keys());
    let mut numbers = Numbers(0x5eed);
    let (mut refusals, mut intact, mut left) = (0, 0, 0);
    for _ in 0..damages {
        restore(folder, &whole);
        let what = damage(&whole, &mut numbers);
        let before = files(folder);
        if refused(folder).is_none() {
            intact += 1;
            assert!(content(folder) == expected, "silent: {what}");
            continue;
        }
        refusals += 1;
        assert!(
            files(folder) == before,
            "{what}: a refusal changed the files"
        );
        let store = Embedded::open(folder, accepting_loss());
        let store = store.unwrap_or_else(|error| panic!("{what}: {error}"));
        let ids = (0..instances).map(|n| swirl_model::ids::InstanceId::new(format!("i{n}")));
        for id in ids {
            left += usize::from(block_on(store.instance(&id)).unwrap().is_some());
        }
        drop(store);
        assert_eq!(refused(folder), None, "{what}: once accepted, it is whole");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.to_str().unwrap().contains("damaged") {
                std::fs::remove_dir_all(path).unwrap();
            }
        }
    }
    println!(
        "{damages} damages: {refusals} refused, {intact} without effect; of {instances} instances, {} were left on \
         average after a loss was accepted",
        left / refusals.max(1)
    );
    assert!(refusals > damages / 2);
}

/// The log that is being written.
fn last_log(folder: &Path) -> PathBuf {
    let names = files(folder).into_keys();
    let mut logs = names.filter(|path| path.extension().is_some_and(|it| it == "log"));
    logs.next_back().unwrap()
}

#[test]
fn a_torn_change_is_cut_if_it_was_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(folder, 5, 1, 1 << 20);
    let (whole, expected) = (files(folder), content(folder));
    let log = last_log(folder);
    let bytes = &whole[&log];
    // The beginning of a change, all zeros, and a whole change of another number.
    let frame = bytes.iter().rposition(|byte| *byte == 0xf5).unwrap();
    let half = &bytes[frame..frame + (bytes.len() - frame) / 2];
    for (torn, is_cut) in [
        (half, true),
        (&[0; 500][..], true),
        (&bytes[frame..], false),
    ] {
        restore(folder, &whole);
        let mut file = std::fs::File::options().append(true).open(&log).unwrap();
        file.write_all(torn).unwrap();
        drop(file);
        assert_eq!(refused(folder).is_none(), is_cut);
        if is_cut {
            assert_eq!(content(folder), expected);
        }
    }
    // Without the last acknowledged change.
    restore(folder, &whole);
    std::fs::write(&log, &bytes[..frame]).unwrap();
    let error = refused(folder).unwrap();
    assert!(error.contains("The last change (after "), "{error}");
}

#[test]
fn a_loss_that_is_accepted_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(folder, 20, 1, 1 << 20);
    let log = last_log(folder);
    let bytes = std::fs::read(&log).unwrap();
    // The middle of the log: what came before is there, and nothing that came after.
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    let error = refused(folder).unwrap();
    assert!(error.contains(" changes (after "), "{error}");
    let store = Embedded::open(folder, accepting_loss()).unwrap();
    let is_there = |n: usize| {
        let id = swirl_model::ids::InstanceId::new(format!("i{n}"));
        block_on(store.instance(&id)).unwrap().is_some()
    };
    let there: Vec<bool> = (0..20).map(is_there).collect();
    let left = there.iter().take_while(|is_there| **is_there).count();
    assert!((5..15).contains(&left), "{there:?}");
    assert!(there[left..].iter().all(|is_there| !is_there), "{there:?}");
    drop(store);
    assert!(folder.join("records.damaged").is_dir());
    // Everything is gone: without its folder, a store isn't taken for a new one.
    std::fs::remove_dir_all(folder.join("records")).unwrap();
    assert!(refused(folder).unwrap().contains("manifest: it is missing"));
    Embedded::open(folder, accepting_loss()).unwrap();
    assert_eq!(refused(folder), None);
}

#[test]
fn an_instance_that_may_lack_records_is_suspended() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fill(folder, 600, 20, 60_000);
    let whole = files(folder);
    let base = whole
        .iter()
        .find(|(path, _)| path.extension().is_some_and(|it| it == "base"));
    let (path, bytes) = base.unwrap();
    let mut damaged = bytes.clone();
    // A scope's record in the middle.
    let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"scope/"));
    let places: Vec<usize> = places.collect();
    damaged[places[places.len() / 2] + 50] ^= 1;
    std::fs::write(path, damaged).unwrap();
    assert!(refused(folder).unwrap().contains("is damaged at byte"));
    let store = Embedded::open(folder, accepting_loss()).unwrap();
    let (mut gone, mut suspended) = (0, 0);
    for n in 0..600 {
        let id = swirl_model::ids::InstanceId::new(format!("i{n}"));
        match block_on(store.instance(&id)).unwrap() {
            Some(instance) => suspended += usize::from(instance.state.suspended),
            None => gone += 1,
        }
    }
    assert!(
        gone + suspended > 0 && gone + suspended < 600,
        "{gone} {suspended}"
    );
    drop(store);
    let store = Embedded::open(folder, Options::default()).unwrap();
    let mut again = 0;
    for n in 0..600 {
        let id = swirl_model::ids::InstanceId::new(format!("i{n}"));
        let instance = block_on(store.instance(&id)).unwrap();
        again += usize::from(instance.is_some_and(|instance| instance.state.suspended));
    }
    assert_eq!(again, suspended, "the suspension is stored");
}
