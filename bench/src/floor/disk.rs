//! The floor of the embedded store: records are appended to a file and synced, with one sync for all waiting writers, as in
//! its journal.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use anyhow::{Context, Result};
use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::measure::{Caller, Figure, closed_loop};
use crate::usage::Meter;

type Job = (Vec<(String, Vec<u8>)>, oneshot::Sender<()>);

struct Writer {
    jobs: Sender<Job>,
    at_once: bool,
    name: usize,
    number: u64,
}

impl Writer {
    async fn write(&self, records: &[(&str, usize)]) -> Result<()> {
        let key = |kind: &str| format!("{kind}/{}-{}", self.name, self.number);
        let records = records.iter();
        let records = records.map(|(kind, size)| (key(kind), vec![b'x'; *size]));
        let (done, ticket) = oneshot::channel();
        self.jobs.send((records.collect(), done))?;
        ticket.await.context("the writer is gone")
    }
}

#[async_trait]
impl Caller for Writer {
    /// An instance with pure states: two commits or one, about as large as those of the embedded store.
    async fn once(&mut self) -> Result<()> {
        self.number += 1;
        if self.at_once {
            let records = [
                ("header", 250),
                ("scope", 150),
                ("state", 100),
                ("history", 900),
                ("index", 60),
            ];
            return self.write(&records).await;
        }
        self.write(&[("header", 250), ("scope", 200), ("index", 60)])
            .await?;
        self.write(&[
            ("scope", 150),
            ("state", 100),
            ("history", 900),
            ("index", 60),
        ])
        .await
    }
}

/// Instances per second, if an instance consisted only of its two commits, or one.
pub async fn run(folder: &Path, at_once: bool, in_flight: usize, seconds: f64) -> Result<Figure> {
    let mut log = File::create(folder.join("floor"))?;
    let (jobs, receiver) = channel::<Job>();
    let thread = std::thread::spawn(move || -> Result<()> {
        while let Ok(first) = receiver.recv() {
            let (mut batch, mut waiting) = (Vec::new(), Vec::new());
            for (records, done) in std::iter::once(first).chain(receiver.try_iter()) {
                for (key, value) in records {
                    batch.extend_from_slice(key.as_bytes());
                    batch.extend_from_slice(&value);
                }
                waiting.push(done);
            }
            log.write_all(&batch)?;
            log.sync_data()?;
            for done in waiting {
                let _ = done.send(());
            }
        }
        Ok(())
    });
    let callers = (0..in_flight).map(|name| Writer {
        jobs: jobs.clone(),
        at_once,
        name,
        number: 0,
    });
    let figure = closed_loop(callers.collect(), seconds, &Meter::default()).await?;
    drop(jobs);
    match thread.join() {
        Ok(ended) => ended?,
        Err(_) => anyhow::bail!("the writer panicked"),
    }
    Ok(figure)
}
