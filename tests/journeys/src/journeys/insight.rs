//! What the console tells about many instances, and about data.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::definitions::{APPROVAL, ORDER};
use crate::stage::Stage;

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
        .shows(&["Counted are all 2 instances", "✕ 2"])
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
    browser.shows(&["✕ faulted", "Charge"]).await
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
            "In “Charge”, the state before",
            "+ added",
            "/payment",
        ])
        .await?;
    browser.check().await?;
    let history = dev.api.get(&format!("/instances/{id}/history")).await?;
    let entries = history["entries"].as_array().context("no history")?;
    let charge = entries
        .iter()
        .position(|entry| entry["event"] == "state_entered" && entry["name"] == "Charge");
    let charge = charge.context("it never came to Charge")? + 1;
    browser.press(&charge.to_string()).await?;
    browser
        .shows(&["In “Check”, the state before", "1 added", "/checked"])
        .await?;
    browser.lacks("/payment").await?;
    browser.check().await
}
