//! CloudEvents from libraries of other languages and from the shell, as `docs/clients.md` says, and back to them.
//!
//! A program confirms an order, and prints the event that the workflow produces then. The instance must have what was sent.

mod dev;
mod run;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};
use swirl_chaos::Cluster;
use swirl_servers::eventually;

use self::dev::Dev;
use self::run::{Place, blocks};
use crate::say;
use crate::swirl::Swirl;

const LEASE: Duration = Duration::from_secs(5);

const WORKFLOW: &str = "confirmation";
const DEFINITION: &str = "examples/confirmation/confirmation.sw.yaml";
const PAGE: &str = "docs/clients.md";
const SECTION: &str = "From the shell";

/// Each language's folder, and the command there that `WAY MODE` is added to.
const LANGUAGES: [(&str, &str, &[&str]); 4] = [
    ("go", "clients/go/exchange", &["../bin/exchange"]),
    (
        "java",
        "clients/java",
        &["mvn", "--quiet", "--batch-mode", "compile", "exec:java"],
    ),
    (
        "python",
        "clients/python",
        &[".venv/bin/python", "exchange.py"],
    ),
    (
        "typescript",
        "clients/typescript",
        &["node", "build/exchange.js"],
    ),
];
const MODES: [&str; 2] = ["structured", "binary"];

/// `nats`: the command line of NATS, if it is there.
pub async fn check(swirl: PathBuf, nats: Option<PathBuf>, languages: &[&str]) -> Result<()> {
    let swirl = crate::program(swirl)?;
    let nats = nats.map(crate::program).transpose()?;
    if let Some(name) = languages.iter().find(|name| folder(name).is_none()) {
        bail!("there is no client in {name}");
    }
    let mut failed = on_dev(&swirl, languages).await?;
    failed.extend(on_cluster(&swirl, nats.as_deref(), languages).await?);
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn folder(language: &str) -> Option<(&'static str, &'static [&'static str])> {
    let mut all = LANGUAGES.iter();
    let (_, folder, command) = all.find(|(name, ..)| *name == language)?;
    Some((folder, command))
}

/// `swirl dev` has no NATS, so events only go in.
async fn on_dev(swirl: &Path, languages: &[&str]) -> Result<Vec<String>> {
    let dev = Dev::start(swirl, Path::new("examples/confirmation"))?;
    let place = Place::new(swirl, None, &dev.url, None)?;
    let mut orders = Orders::new(Swirl::new(vec![dev.url.clone()])?);
    let mut failed = Vec::new();
    for language in languages {
        for mode in MODES {
            let printed = exchanged(&place, language, "dev", mode).await;
            let checked = match printed {
                Ok(sent) => orders.confirmed(None).await.and_then(|()| is_sent(&sent)),
                Err(error) => Err(error),
            };
            note(&mut failed, &format!("{language} dev {mode}"), checked);
        }
    }
    Ok(failed)
}

async fn on_cluster(swirl: &Path, nats: Option<&Path>, languages: &[&str]) -> Result<Vec<String>> {
    let cluster = Cluster::start(swirl, 1, 1, LEASE, false)?;
    let apis = cluster.apis();
    let api = Swirl::new(apis.clone())?;
    let definition = std::fs::read_to_string(DEFINITION).context(DEFINITION)?;
    api.deploy(&definition, &Map::new()).await?;
    let server = apis.first().context("no coordinator")?;
    let place = Place::new(swirl, nats, server, Some(&cluster.nats.url()))?;
    let mut orders = Orders::new(api);
    let mut failed = Vec::new();
    for language in languages {
        for way in ["nats", "http"] {
            for mode in MODES {
                let printed = exchanged(&place, language, way, mode).await;
                let checked = match printed {
                    Ok(received) => orders.shipped(&received).await,
                    Err(error) => Err(error),
                };
                note(&mut failed, &format!("{language} {way} {mode}"), checked);
            }
        }
    }
    let page = std::fs::read_to_string(PAGE).context(PAGE)?;
    let blocks = blocks(&page, SECTION);
    ensure!(!blocks.is_empty(), "no commands in '{SECTION}' of {PAGE}");
    for (index, block) in blocks.into_iter().enumerate() {
        let name = format!("{PAGE}, commands {}", index + 1);
        if nats.is_none() && block.contains("nats ") {
            say(&format!("left out: {name}, without the command 'nats'"));
            continue;
        }
        let checked = match block.contains("swirl start") {
            true => match place.shell(&block).await {
                Ok(_) => orders.confirmed(None).await,
                Err(error) => Err(error),
            },
            false => printed_last(&place, &block).await,
        };
        note(&mut failed, &name, checked);
    }
    Ok(failed)
}

fn note(failed: &mut Vec<String>, name: &str, checked: Result<()>) {
    match checked {
        Ok(()) => say(&format!("ok: {name}")),
        Err(error) => {
            say(&format!("FAILED: {name}: {error:#}"));
            failed.push(format!("{name}: {error:#}"));
        }
    }
}

/// The event that a program prints.
async fn exchanged(place: &Place, language: &str, way: &str, mode: &str) -> Result<Value> {
    let (folder, command) = folder(language).context("no such client")?;
    // Maven takes the arguments of the program as one.
    let arguments = match language {
        "java" => vec![format!("-Dexec.args={way} {mode}")],
        _ => vec![way.to_owned(), mode.to_owned()],
    };
    let printed = place
        .program(Path::new(folder), command, &arguments)
        .await?;
    // Maven writes codes for colours before it.
    let mut lines = printed
        .lines()
        .rev()
        .filter_map(|line| line.find('{').map(|at| &line[at..]));
    let event = lines.find_map(|line| serde_json::from_str::<Value>(line).ok());
    event.with_context(|| format!("no event in what it printed: {printed}"))
}

fn is_sent(event: &Value) -> Result<()> {
    let expected = json!({
        "type": "org.example.order.confirmed", "source": "/shop", "data": {"by": "Ada"},
    });
    ensure!(*event == expected, "it printed {event}");
    Ok(())
}

/// The last event that was published. It comes after the end of its instance.
async fn printed_last(place: &Place, block: &str) -> Result<()> {
    eventually("the last order", async || {
        let printed = place.shell(block).await.ok()?;
        (printed.contains("/shipping") && printed.contains("S-4")).then_some(())
    })
    .await;
    Ok(())
}

/// The orders so far.
struct Orders {
    api: Swirl,
    seen: HashSet<String>,
}

impl Orders {
    fn new(api: Swirl) -> Orders {
        Orders {
            api,
            seen: HashSet::new(),
        }
    }

    /// There is one more instance, which got the confirmation, of this order if it is known.
    async fn confirmed(&mut self, order: Option<&Value>) -> Result<()> {
        let id = self.api.newest(WORKFLOW).await?.context("no instance")?;
        ensure!(self.seen.insert(id.clone()), "no new instance");
        let instance = self.api.ended(&id).await?;
        let output = &instance["output"];
        let order = order.unwrap_or(&output["order"]);
        let expected = json!({"order": order, "status": "shipped", "confirmation": {"by": "Ada"}});
        ensure!(
            instance["status"] == "completed" && *output == expected,
            "the instance got something else: {instance:#}"
        );
        Ok(())
    }

    /// The same, and this is the event that it produced.
    async fn shipped(&mut self, event: &Value) -> Result<()> {
        let order = &event["data"]["order"];
        self.confirmed(Some(order)).await?;
        let expected = json!({
            "type": "org.example.order.shipped", "source": "/shipping", "data": {"order": order},
        });
        ensure!(*event == expected, "it read {event}");
        Ok(())
    }
}
