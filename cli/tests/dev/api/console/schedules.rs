//! The page of schedules: each form acts, and passes its reason to the audit log.

use serde_json::json;

use super::{Browser, has};
use crate::dev::process::Dev;

pub async fn check(dev: &Dev, browser: &Browser<'_>) {
    has(
        &browser.page("/schedules").await,
        &["hourly", "0 * * * *", "Starts next", "Backfill a period"],
    );
    let act = async |action: &str, reason: &str| {
        let path = format!("/schedules/hourly/{action}");
        let answer = browser.send(&path, &[("reason", reason)]).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.text
    };
    has(
        &act("pause", "the printer is broken").await,
        &["The schedule is paused.", "Would start next", "Resume"],
    );
    has(
        &act("resume", " ").await,
        &["The schedule starts instances again."],
    );
    let backfill = async |what: &str| {
        let fields = [
            ("from", "2024-02-01T00:00"),
            ("to", "2024-02-01T02:00"),
            ("reason", "\"missed\""),
            ("do", what),
        ];
        browser
            .send("/schedules/hourly/backfill", &fields)
            .await
            .text
    };
    let shown = backfill("show").await;
    let count = shown.matches("would be started</td>").count();
    assert_eq!(count, 2, "{shown}");
    // The form that starts them has the same fields.
    has(
        &shown,
        &[
            "name=\"from\" value=\"2024-02-01T00:00\"",
            "value=\"&#34;missed&#34;\"",
            "Start these",
        ],
    );
    let begun = backfill("start").await;
    assert_eq!(begun.matches(">started</td>").count(), 2, "{begun}");
    let again = backfill("show").await;
    assert!(!again.contains("Start these"), "{again}");
    has(&act("fire", "a test").await, &["An instance is started."]);
    let path = "/api/v1/audit?kind=schedule&subject=hourly&limit=4";
    let page = dev.get(path).await.is(200);
    let entries = page["entries"].as_array().unwrap().iter();
    let entries: Vec<_> = entries
        .map(|one| json!([one["action"], one["reason"]]))
        .collect();
    assert_eq!(
        entries,
        [
            json!(["schedule-fire", "a test"]),
            json!(["schedule-backfill", "\"missed\""]),
            json!(["schedule-resume", null]),
            json!(["schedule-pause", "the printer is broken"]),
        ]
    );
}
