//! An instance in an earlier state.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::definitions::ORDER;
use crate::stage::Stage;

/// This works with and without scripts.
pub async fn steps(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let input = json!({"order": "o-1", "amount": 250_000});
    let id = dev.api.start("order", &input).await?;
    dev.api.faulted(&id).await?;
    let history = dev.api.get(&format!("/instances/{id}/history")).await?;
    let entries = history["entries"].as_array().context("no history")?;
    let charge = entries
        .iter()
        .position(|entry| entry["event"] == "state_entered" && entry["name"] == "Charge");
    let charge = charge.context("it never came to Charge")? + 1;
    let total = entries.len();

    let browser = &stage.browser;
    browser.open(&format!("/instances/{id}")).await?;
    browser.shows(&["✕ faulted", "Try again…"]).await?;
    browser.press(&charge.to_string()).await?;
    let then = format!("As it was at line {charge} of {total}");
    browser
        .shows(&[
            &then,
            "entered Charge",
            "▶ running",
            "in the state “Charge”",
        ])
        .await?;
    // Neither later entries nor current actions are shown.
    for words in ["Try again…", "402", "faulted"] {
        browser.lacks(words).await?;
    }
    let marks = async |here: &str, past: &str| {
        let (here, past) = (browser.has(here).await?, browser.has(past).await?);
        ensure!(here && past, "the picture doesn't show where it was");
        anyhow::Ok(())
    };
    marks("svg.chart .card.here", "svg.chart .card.past").await?;
    browser.press("Next step").await?;
    browser
        .shows(&["It calls the function “charge” in the state “Charge”"])
        .await?;
    browser.press("Next step").await?;
    browser
        .shows(&["Recorded in this line", "arguments", "250000", "402"])
        .await?;
    for number in (1..=charge + 1).rev() {
        browser.press("Previous step").await?;
        browser
            .shows(&[&format!("As it was at line {number} of")])
            .await?;
    }
    browser.shows(&["started", "It is about to start."]).await?;
    browser.lacks("Previous step").await?;
    browser.press("As it is now").await?;
    browser.shows(&["✕ faulted", "Try again…"]).await?;

    // The instance continues, and its failure can still be inspected.
    browser.press("Skip the step…").await?;
    browser.fill("Result", "{\"payment\": 7}").await?;
    browser.press("Skip the step").await?;
    browser.shows(&["The result was accepted"]).await?;
    dev.api.completed(&id).await?;
    browser.open(&format!("/instances/{id}")).await?;
    browser.shows(&["✓ completed"]).await?;
    browser.press(&total.to_string()).await?;
    browser
        .shows(&[
            "✕ faulted",
            "It failed in the state “Charge”, in the action “charge”.",
            "Next step",
        ])
        .await?;
    marks("svg.chart .card.failed", "svg.chart .card.past").await
}
