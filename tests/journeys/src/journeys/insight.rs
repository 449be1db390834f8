//! Pages of the console about many instances, about data and about the system itself.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::access::enter;
use crate::definitions::{APPROVAL, DELIVERY, ORDER};
use crate::stage::Stage;
use crate::wait::until;

/// How many instances are in each state.
pub async fn states(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER, APPROVAL]).await?;
    for number in 0..2 {
        let input = json!({"order": format!("o-{number}"), "amount": 250_000});
        let id = dev.api.start("order", &input).await?;
        dev.api.faulted(&id).await?;
    }
    let waits = dev.api.start("approval", &json!({"order": "a-1"})).await?;
    dev.api.waiting(&waits).await?;
    let browser = &stage.browser;
    browser.open("/definitions/approval/1.0.0").await?;
    browser
        .shows(&[
            "Instances by state",
            "One instance of this version",
            "of these waiting",
        ])
        .await?;
    ensure!(
        browser.has("svg.chart .card.busy3").await?,
        "no state is marked"
    );
    browser.open("/definitions/order/1.0.0").await?;
    browser
        .shows(&["This counts all 2 instances", "✕ 2"])
        .await?;
    ensure!(
        browser.has("svg.chart .card.ailing").await?,
        "the state that fails is not marked"
    );
    let said = browser
        .run("return document.querySelector('svg.chart .card.ailing').parentElement.textContent")
        .await?;
    let said = said.as_str().unwrap_or_default();
    ensure!(said.contains("2 failed"), "not in words: {said}");
    browser.press("Show those that failed in Charge").await?;
    browser.shows(&["✕ faulted", "Charge"]).await?;
    dev.api.deploy(&stage.document(DELIVERY)).await?;
    for number in 0..8 {
        // Three are in stock.
        let quantity = if number < 2 { 4 } else { 1 };
        let input = json!({"order": format!("d-{number}"), "item": "lamp", "quantity": quantity});
        let id = dev.api.start("delivery", &input).await?;
        match number {
            ..2 => dev.api.faulted(&id).await?,
            _ => dev.api.waiting(&id).await?,
        };
    }
    let paid = json!({"specversion": "1.0", "id": "1", "source": "/bank",
        "type": "org.example.paid", "order": "d-2"});
    dev.api.send(&paid).await?;
    until("the two states that are waited in", async || {
        browser.open("/definitions/delivery/1.0.0").await?;
        let text = browser.text().await?;
        let is_there = text.contains("Await delivery 1 1") && text.contains("Await payment 5 5");
        Ok(if is_there { Ok(()) } else { Err(text) })
    })
    .await?;
    browser.picture("console-states.png", 700).await
}

/// How many instances began, ended and failed. Works with and without scripts.
pub async fn trend(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let id = dev
        .api
        .start("order", &json!({"order": "o-1", "amount": 5}))
        .await?;
    dev.api.completed(&id).await?;
    let input = json!({"order": "o-2", "amount": 250_000});
    let id = dev.api.start("order", &input).await?;
    dev.api.faulted(&id).await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    browser
        .shows(&["The last hour", "Started 2", "Ended 1", "Failed 1"])
        .await?;
    for chart in [
        "Started in the last hour: 2, ",
        "Failed in the last hour: 1, 1 in a minute at most",
        "Time to complete in the last hour: ",
    ] {
        let selector = format!("#trend svg[role=img][aria-label^='{chart}'] rect title");
        ensure!(browser.has(&selector).await?, "no chart says {chart}");
    }
    browser.check().await?;
    browser.press("Day").await?;
    browser
        .shows(&["The last 24 hours", "2 in 15 minutes at most"])
        .await?;
    browser.press("Show the numbers").await?;
    browser.shows(&["Hour from", "Longest time"]).await?;
    browser.check().await
}

/// Works with and without scripts.
pub async fn changes(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let input = json!({"order": "o-1", "amount": 5});
    let id = dev.api.start("order", &input).await?;
    dev.api.completed(&id).await?;
    let browser = &stage.browser;
    browser.open(&format!("/instances/{id}")).await?;
    browser
        .shows(&[
            "What changed in the data",
            "In “Ship”, the last state",
            "/tracking",
            "In “Charge”, the previous state",
            "+ added",
            "/payment",
        ])
        .await?;
    browser.check().await?;
    browser
        .picture_of("console-changes.png", "#changes")
        .await?;
    let history = dev.api.get(&format!("/instances/{id}/history")).await?;
    let entries = history["entries"].as_array().context("no history")?;
    let charge = entries
        .iter()
        .position(|entry| entry["event"] == "state_entered" && entry["name"] == "Charge");
    let charge = charge.context("it never came to Charge")? + 1;
    browser.press(&charge.to_string()).await?;
    browser
        .shows(&["In “Check”, the previous state", "1 added", "/checked"])
        .await?;
    browser.lacks("/payment").await?;
    browser.check().await
}

/// Late work, living processes and the checks of the servers, on a cluster.
pub async fn system(stage: Stage) -> Result<()> {
    let cluster = stage.cluster().await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    enter(browser, &cluster.viewer).await?;
    browser
        .shows(&[
            "Is work waiting?",
            "Steps of instances",
            "Timers",
            "None is overdue.",
            "Processes",
            "coordinator",
            "worker",
            "127.0.0.1:",
            "MiB",
            "Running since",
        ])
        .await?;
    browser.check().await?;
    let host = cluster.api.get("/system").await?["processes"][0]["host"].clone();
    let host = host.as_str().unwrap_or("none");
    browser.reword(&[(host, "swirl-1")]).await?;
    browser.picture("console-overview.png", 760).await?;
    browser.open("/system").await?;
    browser
        .shows(&[
            "This server is ready",
            "only visitors with the role operator see them",
        ])
        .await?;
    browser.press("Sign out").await?;
    browser.open("/system").await?;
    enter(browser, cluster.api.token.as_deref().context("no token")?).await?;
    browser
        .shows(&["checks", "redis-namespace", "nats-stream", "auth.tokens"])
        .await?;
    browser.check().await?;
    let folder = cluster.folder();
    browser
        .reword(&[(&folder, "/etc/swirl"), (host, "swirl-1")])
        .await?;
    browser.picture("console-system.png", 820).await
}

/// The same of a single process.
pub async fn of_dev(stage: Stage) -> Result<()> {
    let _dev = stage.dev(&[APPROVAL]).await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    browser
        .shows(&["None is waiting for a worker.", "everything (swirl dev)"])
        .await?;
    browser.open("/system").await?;
    browser
        .shows(&["All 2 checks passed.", "instances are kept in"])
        .await?;
    browser.check().await
}
