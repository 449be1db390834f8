//! The cost of a synced write in different stores: `cargo run --release -p swirl-embedded --example
//! journals [FOLDER]`. A change has the records of a commit: a scope of 1 KB (overwritten), an
//! instance's state (overwritten), a line of history (appended).
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use redb::{ReadableDatabase, TableDefinition};

const SPAN: Duration = Duration::from_secs(3);
const INSTANCES: u64 = 10_000;

type Record = (String, Vec<u8>);

/// Writes a batch and syncs once.
trait Journal {
    fn write(&mut self, batch: Vec<Record>);
    /// Returns the number of records found, to prove that they were written.
    fn count(&mut self) -> u64;
}

struct Fjall {
    db: Database,
    space: Keyspace,
}

impl Journal for Fjall {
    fn write(&mut self, batch: Vec<Record>) {
        let mut out = self.db.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in batch {
            out.insert(&self.space, key, value);
        }
        out.commit().unwrap();
    }

    fn count(&mut self) -> u64 {
        self.space.iter().count() as u64
    }
}

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");

struct Redb(redb::Database);

impl Journal for Redb {
    fn write(&mut self, batch: Vec<Record>) {
        let transaction = self.0.begin_write().unwrap();
        {
            let mut table = transaction.open_table(TABLE).unwrap();
            for (key, value) in &batch {
                table.insert(key.as_str(), value.as_slice()).unwrap();
            }
        }
        transaction.commit().unwrap();
    }

    fn count(&mut self) -> u64 {
        use redb::ReadableTableMetadata;
        self.0
            .begin_read()
            .unwrap()
            .open_table(TABLE)
            .unwrap()
            .len()
            .unwrap()
    }
}

/// Only appends: the lowest cost of a log with snapshots, without any compaction.
struct Log {
    file: File,
    records: u64,
}

impl Journal for Log {
    fn write(&mut self, batch: Vec<Record>) {
        let mut bytes = Vec::new();
        for (key, value) in batch {
            bytes.extend((key.len() as u32).to_le_bytes());
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend(key.as_bytes());
            bytes.extend(value);
            self.records += 1;
        }
        self.file.write_all(&bytes).unwrap();
        self.file.sync_data().unwrap();
    }

    fn count(&mut self) -> u64 {
        self.records
    }
}

fn change(n: u64) -> [Record; 3] {
    let (instance, line) = (n % INSTANCES, n / INSTANCES);
    [
        (format!("scope/{instance:016x}/r"), vec![b'x'; 1000]),
        (format!("instance/{instance:016x}"), vec![b'y'; 150]),
        (
            format!("history/{instance:016x}/{line:016x}"),
            vec![b'z'; 120],
        ),
    ]
}

fn open(name: &str, folder: &Path) -> Box<dyn Journal> {
    match name {
        "fjall" => {
            let db = Database::builder(folder.join("fjall"))
                .worker_threads(1)
                .open()
                .unwrap();
            let space = db
                .keyspace("state", KeyspaceCreateOptions::default)
                .unwrap();
            Box::new(Fjall { db, space })
        }
        "redb" => Box::new(Redb(redb::Database::create(folder.join("redb")).unwrap())),
        _ => Box::new(Log {
            file: File::create(folder.join("log")).unwrap(),
            records: 0,
        }),
    }
}

fn main() {
    let folder: PathBuf = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "target/journals".into())
        .into();
    for batch in [1, 16, 256] {
        for name in ["log", "fjall", "redb"] {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            let mut journal = open(name, &folder);
            let begin = Instant::now();
            let mut changes = 0;
            while begin.elapsed() < SPAN {
                journal.write((0..batch).flat_map(|n| change(changes + n)).collect());
                changes += batch;
            }
            let rate = changes as f64 / begin.elapsed().as_secs_f64();
            assert!(journal.count() >= changes.min(INSTANCES));
            println!("{name:>5}, {batch:>3} changes a sync: {rate:>8.0} changes/s");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
