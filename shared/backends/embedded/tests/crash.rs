//! Crashes: kill -9, a full disk, damage, a second process.

mod damage;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;

use futures::executor::{ThreadPool, block_on};
use futures::task::SpawnExt;
use swirl_embedded::{Embedded, OpenError, Options, raw};
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::Header;
use swirl_model::scope::{Cursor, Role, Scope};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, data};
use swirl_ports::execution::Record;
use swirl_ports::*;

const WRITERS: usize = 8;
const FOLDER: &str = "SWIRL_TEST_FOLDER";
/// The size of the payload of each commit of the other process.
const BYTES: &str = "SWIRL_TEST_BYTES";

fn new(id: &str) -> NewRecords {
    let header = Header {
        id: InstanceId::new(id),
        definition: DefinitionId {
            workflow: "flow".into(),
            version: "1".into(),
        },
        version: "1".to_owned(),
        input: data!({}),
        started_at: Timestamp(0),
        parent: None,
        continued_from: None,
        scheduled_at: None,
        key: None,
        instance_key: None,
        timeout: None,
        depth: 0,
        hops: 0,
        trace: Default::default(),
        retention: Default::default(),
    };
    let root = Scope::new(ScopeId::root(), Role::Root, data!(0));
    NewRecords {
        header,
        root,
        ends_with_parent: false,
        watched: false,
        first_turn: None,
    }
}

fn event(id: String) -> CloudEvent {
    let attributes = Default::default();
    let (source, kind) = ("/crash".to_owned(), "t".to_owned());
    CloudEvent {
        specversion: "1.0".to_owned(),
        id,
        source,
        kind,
        attributes,
        data: None,
    }
}

fn root(id: &str) -> ScopeRef {
    ScopeRef::root(InstanceId::new(id))
}

/// One step of a writer: the record, an outbox entry and a history entry, all with its number.
async fn step(store: &Embedded, id: &str, number: i64, load: &Data) -> Result<()> {
    let Acquired::Held(held) = store.acquire(&root(id), 1).await? else {
        panic!("busy")
    };
    let Record::Scope(mut scope) = held.record else {
        panic!("no record")
    };
    scope.data = Data::int(number);
    scope.cursor = Cursor::Idle;
    scope.params = vec![("load".into(), load.clone())];
    let event = event(format!("{id}-{number}"));
    let history = Event::EventProduced {
        name: "e".into(),
        id: event.id.clone(),
    };
    let commit = Commit {
        lease: held.lease.clone(),
        scope,
        consumed: vec![],
        refused: Vec::new(),
        history: vec![HistoryEntry {
            data: None,
            at: Timestamp(number),
            scope: ScopeId::root(),
            event: history,
            data_until: None,
        }],
        commands: vec![Command::Publish(event)],
        at: Timestamp(number),
        require_unchanged_inbox: false,
        fits: false,
        release: false,
        lease_ms: 1,
    };
    let Committed::Done { .. } = store.commit(commit).await? else {
        panic!("refused")
    };
    store.release(&held.lease).await?;
    Ok(())
}

/// Runs this test binary as another process that only writes.
fn child(folder: &Path, shell: &str, bytes: usize) -> Child {
    let exe = std::env::current_exe().unwrap();
    let command = format!(
        "{shell} exec '{}' crash::writer --exact --nocapture",
        exe.display()
    );
    Process::new("sh")
        .args(["-c", &command])
        .env(FOLDER, folder)
        .env(BYTES, bytes.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The body of the other process, not a separate test. It prints the acknowledged numbers.
#[test]
fn writer() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let store = Arc::new(Embedded::open(folder, Options::default()).unwrap());
    let bytes = std::env::var(BYTES)
        .ok()
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(0);
    let load = Data::string("x".repeat(bytes));
    let pool = ThreadPool::builder().pool_size(2).create().unwrap();
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .unwrap();
    };
    let writers = (0..WRITERS).map(|writer| {
        let (store, load) = (store.clone(), load.clone());
        pool.spawn_with_handle(async move {
            let id = format!("w{writer}");
            store.create(new(&id)).await?;
            for number in 1.. {
                step(&store, &id, number, &load).await?;
                say(format!("acked {writer} {number}\n"));
            }
            Ok::<(), Error>(())
        })
        .unwrap()
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        if let Err(error) = block_on(writer) {
            say(format!("failed {error}\n"));
        }
    }
    let read = block_on(store.instance(&InstanceId::new("w0")));
    say(format!("afterwards {}\n", read.is_err()));
}

#[derive(Default)]
struct Heard {
    acked: [i64; WRITERS],
    failed: Vec<String>,
    afterwards: Option<bool>,
}

impl Heard {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["acked", writer, number] => {
                let (writer, number): (usize, i64) =
                    (writer.parse().unwrap(), number.parse().unwrap());
                self.acked[writer] = self.acked[writer].max(number);
            }
            ["failed", ..] => self.failed.push(line.to_owned()),
            ["afterwards", failed] => self.afterwards = Some(failed == "true"),
            _ => {}
        }
    }
}

/// Checks that all acknowledged changes are stored, and that every change is complete.
fn check(folder: &Path, acked: &[i64; WRITERS]) {
    let store = Embedded::open(folder, Options::default()).unwrap();
    let unflushed = block_on(store.unflushed(usize::MAX)).unwrap();
    for (writer, acked) in acked.iter().enumerate() {
        let id = InstanceId::new(format!("w{writer}"));
        let scopes = block_on(store.scopes(&id)).unwrap();
        let Some(scope) = scopes.first() else {
            assert_eq!(*acked, 0, "{id} is missing");
            continue;
        };
        let number: i64 = scope.data.to_text().parse().unwrap();
        assert!(
            number >= *acked,
            "{id}: {acked} was acknowledged, {number} is stored"
        );
        assert!(number <= acked + 1, "{id}: {number} was never written");
        assert_eq!(scope.rev, number as u64);
        assert_eq!(block_on(store.history(&id)).unwrap().len(), number as usize);
        let outbox = unflushed
            .iter()
            .filter(|entry| entry.instance == id)
            .count();
        assert_eq!(outbox, number as usize);
    }
    assert!(acked.iter().sum::<i64>() > 0, "nothing was written");
}

#[test]
fn a_kill_loses_no_acknowledged_change() {
    for lines in [30, 300, 1500] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = child(folder.path(), "", 0);
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = Heard::default();
        for _ in 0..lines {
            heard.line(&out.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Its output before it died counts too.
        out.for_each(|line| heard.line(&line.unwrap()));
        check(folder.path(), &heard.acked);
    }
}

#[test]
fn a_failing_disk_fails_all_later_operations() {
    let folder = tempfile::tempdir().unwrap();
    // Files are limited to 16 MiB (the unit is 512 bytes), half of a log. Growing beyond it is an error.
    let mut child = child(folder.path(), "trap '' XFSZ; ulimit -f 32768;", 200_000);
    let out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut heard = Heard::default();
    out.for_each(|line| heard.line(&line.unwrap()));
    child.wait().unwrap();
    assert_eq!(heard.failed.len(), WRITERS, "{:?}", heard.failed);
    assert!(
        heard.failed[0].contains("writing to disk failed"),
        "{:?}",
        heard.failed
    );
    assert_eq!(
        heard.afterwards,
        Some(true),
        "reads fail too: memory is ahead of the disk"
    );
    check(folder.path(), &heard.acked);
}

#[test]
fn only_one_process_can_open_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Embedded::open(folder.path(), Options::default()).unwrap();
    let second = Embedded::open(folder.path(), Options::default()).map(drop);
    let Err(OpenError::Locked { .. }) = &second else {
        panic!("{second:?}")
    };
    assert!(
        second
            .unwrap_err()
            .to_string()
            .ends_with("is in use by another process")
    );
    drop(first);
    Embedded::open(folder.path(), Options::default()).unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Embedded::open(&file, Options::default())
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

/// Opens a folder in which a record was replaced.
fn open_with(key: &str, value: &str) -> std::result::Result<(), OpenError> {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    block_on(store.create(new("a"))).unwrap();
    drop(store);
    let records = raw::records(folder.path()).unwrap();
    let found = records
        .into_iter()
        .find(|(found, _)| found.starts_with(key));
    let key = found.map_or_else(|| key.to_owned(), |(found, _)| found);
    let value = (!value.is_empty()).then_some(value);
    raw::replace(folder.path(), &key, value).unwrap();
    Embedded::open(folder.path(), Options::default()).map(drop)
}

#[test]
fn damaged_records_are_named() {
    let what = |key, value| match open_with(key, value) {
        Err(OpenError::Store(Error::Damaged { what, .. })) => what,
        other => panic!("{key}: {other:?}"),
    };
    assert!(what("scope/", "{\"id\":").starts_with("scope/"));
    assert!(what("header/", "{}").starts_with("header/"));
    assert!(
        what("scope/", "").starts_with("scope/"),
        "an instance needs its root scope"
    );
    assert!(what("header/", "").starts_with("instance/"));
    assert!(what("fork/zz/r/1", "{}").starts_with("fork/zz"));
    assert_eq!(
        what("inbox/00000000000000ff/r/x", "{\"seq\":1}"),
        "inbox/00000000000000ff/r/x"
    );
    assert!(open_with("known/00000000000000ff", "{\"key\":\"k\",\"at\":0}").is_ok());
}
