//! Failed instances.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::definitions::{ORDER, PARCELS};
use crate::server::Dev;
use crate::stage::Stage;
use crate::wait::until;

/// Three orders, the second of which is too expensive; returns the id of that one.
async fn orders(dev: &Dev) -> Result<String> {
    let start = async |order: &str, amount: u64| {
        let input = json!({"order": order, "amount": amount});
        dev.api.start("order", &input).await
    };
    let first = start("o-1", 1_250).await?;
    let second = start("o-2", 250_000).await?;
    let third = start("o-3", 990).await?;
    for id in [first, third] {
        dev.api.completed(&id).await?;
    }
    dev.api.faulted(&second).await?;
    Ok(second)
}

pub async fn find(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let id = orders(&dev).await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    browser
        .shows(&["What has failed", "order in Charge"])
        .await?;
    browser.press("Instances").await?;
    browser.shows(&["o-1", "o-2", "o-3"]).await?;
    browser.fill("Query", "@orderId = o-2").await?;
    browser.press("Show").await?;
    browser
        .shows(&["orderId", "o-2", "✕ faulted", "Charge", "402"])
        .await?;
    browser.lacks("o-1").await?;
    browser.picture("console-search.png", 620).await?;
    browser.press("o-2").await?;
    browser
        .shows(&[
            &id,
            "It failed in the state “Charge”, in the action “charge”.",
        ])
        .await?;

    // A mistake in a query is explained where it was made.
    browser.open("/instances").await?;
    browser.fill("Query", "@colour = red").await?;
    browser.press("Show").await?;
    browser
        .shows(&["This query cannot be carried out", "colour"])
        .await?;
    ensure!(browser.filled("Query").await? == "@colour = red");
    Ok(())
}

pub async fn inspect(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let id = orders(&dev).await?;
    let browser = &stage.browser;
    browser.open("/").await?;
    browser.press("Show the newest").await?;
    browser
        .shows(&[
            &id,
            "✕ faulted",
            "It failed in the state “Charge”, in the action “charge”.",
            "402",
            "amount",
            "250000",
        ])
        .await?;
    ensure!(
        browser.has("svg.chart .card.failed").await?,
        "the picture doesn't show where it failed"
    );
    // The history has the arguments of the call.
    let arguments = browser
        .run(
            "return [...document.querySelectorAll('.history details')]
                .map((one) => one.textContent).join('\\n')",
        )
        .await?;
    let arguments = arguments.as_str().unwrap_or_default();
    ensure!(arguments.contains("250000"), "no arguments: {arguments}");
    browser.picture("console-failure.png", 1000).await
}

pub async fn edit(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let id = orders(&dev).await?;
    let browser = &stage.browser;
    browser.open(&format!("/instances/{id}")).await?;
    browser.press("Edit and continue…").await?;
    let label = "State data, as JSON";
    let data = browser.filled(label).await?;
    ensure!(data.contains("250000"), "not the data: {data}");
    let edited = data.replace("250000", "25000");
    browser.fill(label, &edited.replace('}', "")).await?;
    browser.press_refused("Continue", 400).await?;
    browser
        .shows(&[
            "The request was not understood",
            "the data is not valid JSON",
        ])
        .await?;
    // The form is still there with what was written.
    let draft = browser.filled(label).await?;
    ensure!(draft.contains("25000") && !draft.contains('}'), "{draft}");
    browser.fill(label, &edited).await?;
    browser.press("Show what would change").await?;
    browser
        .shows(&["Nothing has been done yet.", "/amount", "250000"])
        .await?;
    let draft = browser.filled(label).await?;
    ensure!(draft == edited, "the draft is lost: {draft}");
    browser.picture("console-edit.png", 1000).await?;
    browser
        .fill(
            "Reason, for the history",
            "the amount was in another currency",
        )
        .await?;
    browser.press("Continue").await?;
    browser
        .shows(&[
            "The instance continues at the step that failed.",
            "✓ completed",
            "because: the amount was in another currency",
        ])
        .await?;
    let done = dev.api.completed(&id).await?;
    ensure!(done["output"]["amount"] == 25_000, "{done:#}");
    ensure!(done["output"]["tracking"].is_string(), "{done:#}");
    Ok(())
}

pub async fn batch(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[PARCELS]).await?;
    let mut ids = Vec::new();
    for number in 1..=20 {
        let input = json!({"parcel": format!("batch-{number}")});
        ids.push(dev.api.start("parcels", &input).await?);
    }
    for id in &ids {
        dev.api.faulted(id).await?;
    }
    let browser = &stage.browser;
    browser.open("/instances").await?;
    browser
        .fill("Query", "workflow = parcels and status = faulted")
        .await?;
    browser.press("Show").await?;
    browser.press("Act on all that match…").await?;
    browser
        .choose("What to do", "Try again what failed")
        .await?;
    browser
        .fill("Reason, for the histories", "the scales are repaired")
        .await?;
    browser.press("Show what it would act on").await?;
    browser
        .shows(&[
            "Try again: 20 instances",
            "This is possible now for all of them",
            "Nothing has been done yet",
        ])
        .await?;
    let reason = browser.filled("Reason, for the histories").await?;
    ensure!(reason == "the scales are repaired", "lost: {reason}");
    browser.press("Try again").await?;
    browser
        .shows(&[
            "20 of 20 instances processed",
            "Acted on: 20. Refused: 0. Failed: 0.",
        ])
        .await?;
    for id in &ids {
        dev.api.completed(id).await?;
    }
    let address = browser.address().await?;
    browser.go(&address).await?;
    browser
        .shows(&[
            "Those that were acted on are now: 20 completed",
            "the scales are repaired",
        ])
        .await?;
    browser.open("/").await?;
    browser
        .shows(&["No instance has stopped with an error"])
        .await
}

/// From the overview, in two presses; what failed again isn't called a success.
pub async fn kind(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER, PARCELS]).await?;
    let mut parcels = Vec::new();
    for number in 1..=7 {
        // The shop fails once for each key, and all journeys share it.
        let input = json!({"parcel": format!("{} {number}", dev.api.url)});
        parcels.push(dev.api.start("parcels", &input).await?);
    }
    let mut orders = Vec::new();
    for number in 1..=5 {
        let input = json!({"order": format!("o-{number}"), "amount": 250_000});
        orders.push(dev.api.start("order", &input).await?);
    }
    for id in parcels.iter().chain(&orders) {
        dev.api.faulted(id).await?;
    }
    let browser = &stage.browser;
    browser.open("/").await?;
    browser
        .shows(&["7× parcels in Weigh", "5× order in Charge"])
        .await?;
    browser.picture("console-kinds.png", 700).await?;
    browser.press("Show all 5").await?;
    browser.shows(&["o-1", "o-5"]).await?;
    browser.lacks("parcels 1.0.0").await?;
    browser.open("/").await?;
    browser.press("Try all 7 again…").await?;
    browser.shows(&["Try again: 7 instances"]).await?;
    browser.press("Try again").await?;
    for id in &parcels {
        dev.api.completed(id).await?;
    }
    browser.open("/").await?;
    browser.lacks("parcels in Weigh").await?;
    // They fail again: they still cost too much.
    browser.press("Try all 5 again…").await?;
    browser.press("Try again").await?;
    until("the outcome of each", async || {
        let address = browser.address().await?;
        browser.go(&address).await?;
        let text = browser.text().await?;
        let all = [
            "5 of 5 instances processed",
            "5 failed again",
            "not all succeeded",
        ];
        let is_there = all.iter().all(|words| text.contains(words));
        Ok(if is_there { Ok(()) } else { Err(text) })
    })
    .await?;
    browser.shows(&["o-3", "✕ faulted", "402"]).await?;
    browser.check().await?;
    browser.open("/batches").await?;
    browser
        .shows(&[
            "not all succeeded",
            "5 failed again",
            "all succeeded",
            "7 completed",
        ])
        .await
}

/// The data of each is changed, the preview shows how, and a change after the preview is shown before it is done.
pub async fn patch(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[ORDER]).await?;
    let id = orders(&dev).await?;
    let browser = &stage.browser;
    browser.open("/instances?status=faulted").await?;
    browser.press("Act on all that match…").await?;
    browser.choose("What to do", "Go back to a state").await?;
    browser.press("Show what it would act on").await?;
    browser.shows(&["Go back to a state: 1 instance"]).await?;
    let state = browser.filled("State to go back to").await?;
    ensure!(state == "Charge", "not where it failed, but {state}");
    browser.fill("Change of the data", ".amount = ").await?;
    browser.press_refused("Preview again", 400).await?;
    browser.shows(&["This is not possible"]).await?;
    browser.fill("Change of the data", ".amount = 2500").await?;
    browser.press("Preview again").await?;
    browser.shows(&["/amount: 250000 → 2500"]).await?;
    browser.fill("Change of the data", ".amount = 25").await?;
    browser.press("Go back to a state").await?;
    browser
        .shows(&["You have changed something", "/amount: 250000 → 25"])
        .await?;
    browser.press("Go back to a state").await?;
    browser.shows(&["1 of 1 instances processed"]).await?;
    let done = dev.api.completed(&id).await?;
    ensure!(done["output"]["amount"] == 25, "{done:#}");
    Ok(())
}
