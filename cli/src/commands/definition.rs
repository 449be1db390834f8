//! `swirl definition`

use anyhow::bail;
use swirl_api::definitions::{
    ACTIVATE, DELETE, Definition, DefinitionSummary, DeleteQuery, DeletedDefinition, GET, LATEST,
    LIST, NextStart, Version,
};
use swirl_api::schedules::Workflow;
use swirl_presentation::timeline::clean;

use crate::arguments::Reason;
use crate::client::{Answered, Client, Server};
use crate::terminal::Terminal;
use crate::text::table;

/// Lists, shows and deletes deployed definitions.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl definition list
  swirl definition show order --version 1.0.0 > order.sw.yaml
  swirl definition activate order:1.0.0      # make an older version current again
  swirl definition delete order:1.0.0")]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Lists all definitions by workflow, and the versions of each in the order of deployment.
    List(List),
    /// Prints a definition's document as it was deployed.
    #[command(disable_version_flag = true)]
    Show(Show),
    /// Deletes a definition: no new instances of it start.
    ///
    /// This is refused while instances of it run or have failed. Its id and version are never reused for other content:
    /// only the same document can be deployed again.
    #[command(disable_version_flag = true)]
    Delete(Delete),
    /// Makes an older version current again: new instances start with it, from requests, events and its schedule.
    ///
    /// Running instances keep their version; see 'swirl move'.
    #[command(disable_version_flag = true)]
    Activate(Activate),
}

#[derive(Debug, clap::Args)]
struct Activate {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// The workflow's version, unless it follows the id: 'order:1.0.0'.
    #[arg(value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// The workflow's version; the latest if absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Delete {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// The workflow's version, unless it follows the id: 'order:1.0.0'.
    #[arg(value_name = "VERSION")]
    version: Option<String>,

    /// Delete it even if it has instances. They continue to their end.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.task {
        Task::List(list) => list.server.run(async |client| {
            let answer = client.ask_pages(LIST.ask()).await?;
            answer.show(terminal, |found| listed(&found.definitions))
        }),
        Task::Show(show) => show.server.run(async |client| {
            let name = meant(&client, &show.workflow, show.version.as_deref());
            let (id, version) = name.await?;
            let answer = shown(&client, id, version).await?;
            answer.show(terminal, |found| found.document.clone())
        }),
        Task::Delete(delete) => delete.server.run(async |client| {
            let at = named(&client, &delete.workflow, delete.version.as_deref()).await?;
            let query = DeleteQuery {
                force: delete.force,
                reason: delete.reason.asked().reason,
            };
            let answer = client.ask(DELETE.at(&at).query(query)).await?;
            answer.show(terminal, deleted)
        }),
        Task::Activate(activate) => activate.server.run(async |client| {
            let at = named(&client, &activate.workflow, activate.version.as_deref()).await?;
            let call = ACTIVATE.at(&at).query(activate.reason.asked());
            client.ask(call).await?.show(terminal, |one| {
                let (id, version) = (clean(&one.id), clean(&one.version));
                let was = match one.changed {
                    true => "is current now",
                    false => "was current already",
                };
                format!("{id}:{version} {was}\n")
            })
        }),
    }
}

/// How many colons of a name are tried.
const COLONS_MAX: usize = 16;

/// The meanings that a name can have: a workflow and its version, as two arguments or as one ('order:1.0.0'), or a
/// workflow alone. Ids and versions may both contain colons.
fn meanings<'a>(name: &'a str, version: Option<&'a str>) -> Vec<(&'a str, Option<&'a str>)> {
    if version.is_some() {
        return vec![(name, version)];
    }
    let colons = name.match_indices(':').take(COLONS_MAX);
    let split = colons.map(|(at, _)| (&name[..at], Some(&name[at + 1..])));
    let split = split.filter(|(id, version)| !id.is_empty() && *version != Some(""));
    split.chain([(name, None)]).collect()
}

/// The first of these meanings that is deployed. If none is, the first one, so that the server refuses it.
async fn meant<'a>(
    client: &Client,
    name: &'a str,
    version: Option<&'a str>,
) -> anyhow::Result<(&'a str, Option<&'a str>)> {
    let all = meanings(name, version);
    if all.len() > 1 {
        for (id, version) in &all {
            if shown(client, id, *version).await?.0.is_ok() {
                return Ok((id, *version));
            }
        }
    }
    Ok(all.first().copied().unwrap_or((name, version)))
}

async fn shown(
    client: &Client,
    id: &str,
    version: Option<&str>,
) -> anyhow::Result<Answered<Definition>> {
    match version {
        Some(version) => client.ask(GET.at(&at(id, version))).await,
        None => client.ask(LATEST.at(&Workflow { id: id.to_owned() })).await,
    }
}

async fn named(client: &Client, name: &str, version: Option<&str>) -> anyhow::Result<Version> {
    match meant(client, name, version).await? {
        (workflow, Some(version)) => Ok(at(workflow, version)),
        (workflow, None) => bail!("add the version: '{workflow}:VERSION'"),
    }
}

fn at(workflow: &str, version: &str) -> Version {
    Version {
        id: workflow.to_owned(),
        version: version.to_owned(),
    }
}

fn deleted(one: &DeletedDefinition) -> String {
    let on = match one.instances {
        0 => String::new(),
        count => format!("; {count} instances continue to their end"),
    };
    let (id, version) = (clean(&one.id), clean(&one.version));
    format!("{id}:{version} is deleted{on}\n")
}

fn listed(found: &[DefinitionSummary]) -> String {
    let mut rows = vec![["WORKFLOW", "VERSION", "DEPLOYED", "SCHEDULE", "FROM"].map(str::to_owned)];
    for one in found {
        let version = clean(&one.head.version);
        let schedule = match &one.schedule {
            Some(NextStart { paused: true, .. }) => "paused".to_owned(),
            Some(NextStart { next: None, .. }) => "over".to_owned(),
            Some(NextStart { next: Some(at), .. }) => format!("next at {at}"),
            None => String::new(),
        };
        rows.push([
            clean(&one.head.id),
            match one.latest {
                true => format!("{version} (current)"),
                false => version,
            },
            one.head.deployed_at.to_string(),
            schedule,
            clean(&one.head.name),
        ]);
    }
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_version_may_follow_the_id() {
        for (name, version, expected) in [
            (
                "order:1.0",
                None,
                vec![("order", Some("1.0")), ("order:1.0", None)],
            ),
            ("order", Some("1.0"), vec![("order", Some("1.0"))]),
            ("order", None, vec![("order", None)]),
            ("a:b", Some("1"), vec![("a:b", Some("1"))]),
            (
                "a:b:1",
                None,
                vec![("a", Some("b:1")), ("a:b", Some("1")), ("a:b:1", None)],
            ),
            (":a:", None, vec![(":a:", None)]),
        ] {
            assert_eq!(meanings(name, version), expected, "{name}");
        }
    }

    #[test]
    fn definitions_are_shown_as_a_table() {
        let row = |version: &str, latest: bool, schedule: Value| {
            let row = json!({"id": "order", "version": version, "deployedAt": "2024-01-31T09:00:00Z",
                "name": "order.sw.yaml", "digest": "", "latest": latest, "schedule": schedule});
            serde_json::from_value(row).unwrap()
        };
        let all = [
            row("1.0", false, Value::Null),
            row(
                "1.1",
                true,
                json!({"paused": false, "next": "2024-02-01T09:00:00Z"}),
            ),
            row("2", true, json!({"paused": true, "next": null})),
        ];
        insta::assert_snapshot!(listed(&all), @"
        WORKFLOW  VERSION        DEPLOYED                  SCHEDULE                          FROM
        order     1.0            2024-01-31T09:00:00.000Z                                    order.sw.yaml
        order     1.1 (current)  2024-01-31T09:00:00.000Z  next at 2024-02-01T09:00:00.000Z  order.sw.yaml
        order     2 (current)    2024-01-31T09:00:00.000Z  paused                            order.sw.yaml
        ");
    }
}
