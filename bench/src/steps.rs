//! Ten HTTP calls in sequence, started and awaited over HTTP: in `swirl dev`, and in any other server that can do the
//! same.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::cluster::http::Connection;
use crate::cluster::{service, workflows};
use crate::dev::Dev;
use crate::measure::{Caller, Figure, closed_loop, median};
use crate::plan::Plan;
use crate::report::Report;
use crate::usage::Meter;

const CALLS: f64 = 10.0;
const IN_FLIGHT: [usize; 3] = [1, 64, 200];

/// A server that makes the calls for each POST request, and then answers.
#[derive(Debug, Clone)]
pub struct Peer {
    name: String,
    address: SocketAddr,
    path: String,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Peer, String> {
        let parts = || {
            let (name, url) = text.split_once('=')?;
            let (address, path) = url.strip_prefix("http://")?.split_once('/')?;
            Some((name, address, path))
        };
        let (name, address, path) = parts().ok_or("expected NAME=http://ADDRESS:PORT/PATH")?;
        let unusable =
            |error| format!("the address '{address}' is not an IP address with a port: {error}");
        Ok(Peer {
            name: name.to_owned(),
            address: address.parse().map_err(unusable)?,
            path: format!("/{path}"),
        })
    }
}

/// A process whose processor time is measured for the peers.
#[derive(Debug, Clone)]
pub struct PeerProcess {
    name: String,
    pid: u32,
}

impl FromStr for PeerProcess {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerProcess, String> {
        let (name, pid) = text.split_once('=').ok_or("expected NAME=PID")?;
        Ok(PeerProcess {
            name: name.to_owned(),
            pid: pid
                .parse()
                .map_err(|_| format!("'{pid}' is not a process id"))?,
        })
    }
}

/// Measures `swirl dev` and the peers alternately.
pub async fn measure(
    plan: &Plan,
    binary: &Path,
    peers: &[Peer],
    processes: &[PeerProcess],
    report: &mut Report,
) -> Result<()> {
    let service = service::start().await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("service.json"),
        service::document(service),
    )?;
    std::fs::write(
        folder.path().join("calls.sw.json"),
        workflows::calls("calls").to_string(),
    )?;
    let (dev, _) = Dev::start(binary, folder.path()).await?;
    let swirl = Peer {
        name: "`swirl dev`, synced".to_owned(),
        address: dev.address,
        path: "/api/v1/workflows/calls/instances?wait=PT60S".to_owned(),
    };
    let mut meter = Meter::default();
    meter.processes.push(("swirl".to_owned(), dev.process.id()));
    let mut all = vec![(swirl, meter)];
    for peer in peers {
        let of = processes.iter().map(|one| (one.name.clone(), one.pid));
        let meter = Meter {
            processes: of.collect(),
            ..Meter::default()
        };
        all.push((peer.clone(), meter));
    }
    let body = json!({"service": format!("http://{service}/step")}).to_string();
    let mut rows = Vec::new();
    for in_flight in IN_FLIGHT {
        let mut figures = vec![Vec::new(); all.len()];
        for _ in 0..plan.repeats {
            for ((peer, meter), figures) in all.iter().zip(&mut figures) {
                let callers = peer.callers(&body, in_flight).await?;
                figures.push(closed_loop(callers, plan.seconds, meter).await?);
            }
        }
        for ((peer, _), figures) in all.iter().zip(figures) {
            let figure = median(figures);
            println!(
                "{} ({in_flight}): {:.0} instances/s",
                peer.name, figure.rate
            );
            rows.push(row(peer, &figure));
        }
    }
    report.say("## Ten HTTP calls, started and awaited over HTTP\n");
    let head = [
        "server",
        "in flight",
        "instances/s",
        "p50 ms",
        "p99 ms",
        "CPU a call, µs",
    ];
    report.table(&head, &rows);
    Ok(())
}

fn row(peer: &Peer, figure: &Figure) -> Vec<String> {
    vec![
        peer.name.clone(),
        figure.in_flight.to_string(),
        format!("{:.0}", figure.rate),
        format!("{:.2}", figure.p50_ms),
        format!("{:.2}", figure.p99_ms),
        figure.usage.by(CALLS).cpu_text(),
    ]
}

struct Requests {
    link: Connection,
    path: String,
    body: Vec<u8>,
}

impl Peer {
    async fn callers(&self, body: &str, count: usize) -> Result<Vec<Requests>> {
        let mut callers = Vec::new();
        for _ in 0..count {
            let link = Connection::open(self.address).await;
            callers.push(Requests {
                link: link.with_context(|| format!("{} does not answer", self.name))?,
                path: self.path.clone(),
                body: body.as_bytes().to_vec(),
            });
        }
        Ok(callers)
    }
}

#[async_trait]
impl Caller for Requests {
    async fn once(&mut self) -> Result<()> {
        let json = [("content-type", "application/json")];
        let answer = self.link.request("POST", &self.path, &json, &self.body);
        let (status, body) = answer.await?;
        let text = || String::from_utf8_lossy(&body).into_owned();
        ensure!(status == 200, "{status}: {}", text());
        // Only Swirl's answer says how an instance ended.
        let ended: Value = serde_json::from_slice(&body).unwrap_or_default();
        let status = ended.get("status");
        ensure!(
            status.is_none_or(|status| status == "completed"),
            "{}",
            text()
        );
        Ok(())
    }
}
