//! Operators' actions on instances and schedules.

use anyhow::Result;
use serde_json::json;

use crate::browser::short;
use crate::definitions::{APPROVAL, HOURLY};
use crate::stage::Stage;

pub async fn cancel(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[APPROVAL]).await?;
    let id = dev.api.start("approval", &json!({"order": "a-1"})).await?;
    dev.api.waiting(&id).await?;
    let browser = &stage.browser;
    browser.open("/instances?status=waiting").await?;
    browser.press(&short(&id)).await?;
    browser.press("Cancel…").await?;
    browser
        .shows(&["It ends here, and can't be continued."])
        .await?;
    browser
        .fill("Reason, for the history", "the customer has called")
        .await?;
    browser.press("Cancel the instance").await?;
    browser
        .shows(&[
            "The instance is being cancelled.",
            "cancelled",
            "because: the customer has called",
        ])
        .await?;
    let there = |found: &serde_json::Value| found["status"] == "cancelled";
    dev.api.instance(&id, "cancelled", there).await?;
    browser.lacks("Cancel…").await
}

pub async fn pause_schedule(stage: Stage) -> Result<()> {
    let dev = stage.dev(&[HOURLY]).await?;
    let browser = &stage.browser;
    browser.open("/schedules").await?;
    browser
        .shows(&[
            "hourly",
            "every hour, on the hour",
            "0 * * * *",
            "Starts next",
            "(in ",
        ])
        .await?;
    browser.press("Pause…").await?;
    browser
        .fill("Reason, for the audit log", "the printer is broken")
        .await?;
    browser.press("Pause the schedule").await?;
    browser
        .shows(&["The schedule is paused.", "‖ paused", "Would start next"])
        .await?;
    let found = dev.api.get("/schedules").await?;
    anyhow::ensure!(found["schedules"][0]["paused"] == true, "{found:#}");
    browser.press("Start one now…").await?;
    browser.press("Start it").await?;
    browser
        .shows(&["An instance is started.", "✓ completed"])
        .await?;
    browser.press("Schedules").await?;
    browser.press("Resume…").await?;
    browser.press("Resume the schedule").await?;
    browser
        .shows(&["The schedule starts instances again.", "Starts next"])
        .await?;
    browser.lacks("‖ paused").await?;
    browser.press("Backfill a period…").await?;
    let period =
        "const [from, to] = document.querySelectorAll('details[open] [type=datetime-local]');
        from.value = '2024-02-01T00:00';
        to.value = '2024-02-01T02:00';";
    browser.run(period).await?;
    browser
        .fill("Reason, for the audit log", "the printer is repaired")
        .await?;
    browser.press("Show what would be started").await?;
    browser.shows(&["hourly: what would be started"]).await?;
    let label = "Reason, for the audit log";
    anyhow::ensure!(
        browser.filled(label).await? == "the printer is repaired",
        "the reason is lost"
    );
    browser.press("Start these").await?;
    browser.shows(&["hourly: what was started"]).await?;
    browser.open("/schedules").await?;
    browser.shows(&["Started last", "✓ completed"]).await?;
    browser.press("All instances of the schedule").await?;
    browser.shows(&["hourly", "✓ completed"]).await?;
    browser.press("Audit").await?;
    browser
        .shows(&[
            "paused a schedule",
            "the printer is broken",
            "backfilled a past period",
            "the printer is repaired",
        ])
        .await
}
