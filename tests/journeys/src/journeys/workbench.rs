//! The page of an instance as a place to find out what went wrong.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::definitions::{BOOKING, ORDER, SAGA};
use crate::stage::Stage;

/// This works with and without scripts.
pub async fn branch(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[BOOKING]).await?;
    let input = json!({"order": "A-2108", "amount": 250_000});
    let id = dev.api.start("booking", &input).await?;
    dev.api.faulted(&id).await?;
    let browser = &stage.browser;
    browser.open("/instances?status=faulted").await?;
    browser.press("A-2108").await?;
    // The failure is named, and the step that failed is open.
    browser
        .shows(&[
            "booking A-2108 ✕ faulted",
            "bookingId A-2108",
            "It failed in the branch “Payment” of “Pay and reserve”, in the action “charge”.",
            "402",
            "Steps in time",
            "charge action ✕ failed",
            "In Pay and reserve › Payment",
            "Arguments",
            "250000",
        ])
        .await?;
    let text = browser.text().await?;
    let mut words = text.split_whitespace();
    ensure!(
        !words.any(|word| word.trim_start_matches(['[', '“']).starts_with("r.")),
        "the page has the id of a scope: {text}"
    );
    ensure!(
        browser.has("svg.chart .group.failed").await?,
        "the picture doesn't show which branch failed"
    );
    browser.picture("console-steps.png", 1000).await?;
    // Another step.
    browser.choose_step("reserve").await?;
    browser
        .shows(&[
            "reserve action ✓ done",
            "In Pay and reserve › Stock",
            "Answer",
            "reservation",
        ])
        .await?;
    browser.choose_step("Note").await?;
    browser
        .shows(&["Note state ✓ done", "What it changed", "/noted"])
        .await?;
    browser.press("Show times of day").await?;
    browser
        .shows(&["Show times since the start", "Note state ✓ done"])
        .await?;
    // The history, filtered.
    browser.choose("Lines", "errors").await?;
    browser
        .choose("Branch", "Pay and reserve / Payment")
        .await?;
    browser.press("Filter").await?;
    browser
        .shows(&["lines fit.", "action charge failed"])
        .await?;
    browser.lacks("action reserve completed").await?;
    browser.press("Without a filter").await?;
    browser.shows(&["action reserve completed"]).await?;
    // The failed state is chosen where the instance could go back to.
    browser.press("Go back to a state…").await?;
    let state = browser.filled("Go back to").await?;
    ensure!(state == "Pay and reserve", "{state} is chosen");
    Ok(())
}

/// The history keeps only what failed, and the instance its last calls.
pub async fn last_answers(stage: Stage) -> Result<()> {
    let document = ORDER
        .replace("  swirl:\n", "  swirl:\n    history: {data: errors}\n")
        .replace("#shipOrder", "#flaky")
        .replace(
            "ship, arguments: {order: \"${ .order }\"}",
            "ship, arguments: {key: last, failures: 1}",
        );
    let dev = stage.dev(&[&document]).await?;
    let input = json!({"order": "o-7", "amount": 5});
    let id = dev.api.start("order", &input).await?;
    dev.api.faulted(&id).await?;
    let browser = &stage.browser;
    browser.open(&format!("/instances/{id}")).await?;
    browser.choose_step("charge").await?;
    browser
        .shows(&["charge action ✓ done", "Arguments", "Answer", "payment"])
        .await?;
    browser.choose_step("Check").await?;
    browser
        .shows(&["Its data was not recorded (history.data)."])
        .await
}

pub async fn compensated(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[SAGA]).await?;
    let input = json!({"order": "A-7", "amount": 250_000});
    let id = dev.api.start("saga", &input).await?;
    dev.api.completed(&id).await?;
    let browser = &stage.browser;
    browser.open(&format!("/instances/{id}")).await?;
    browser
        .shows(&["✓ completed", "compensated", "compensates", "failed"])
        .await?;
    for (selector, what) in [
        (
            ".step.compensated",
            "the timeline doesn't show what was undone",
        ),
        (
            "svg.chart .card.compensated",
            "the picture doesn't show what was undone",
        ),
        (
            "svg.chart .card.caught",
            "the picture doesn't show which state was left by an error",
        ),
        (
            "svg.chart .edge.error.taken",
            "the way that was taken isn't marked",
        ),
    ] {
        ensure!(browser.has(selector).await?, "{what}");
    }
    browser.choose_step("Reserve").await?;
    browser
        .shows(&["Reserve state ↶ compensated", "Its lines of the history"])
        .await
}
