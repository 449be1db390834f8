//! The requests of the editor's script.

use serde_json::Value;

use super::{Browser, DOCUMENT, has};
use crate::dev::process::Dev;

/// The editor's script requests the findings, and nothing is deployed.
pub async fn check(dev: &Dev, browser: &Browser<'_>) {
    let check = async |document: &str| {
        let answer = browser
            .send("/deploy/findings", &[("document", document)])
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.text
    };
    let wrong = DOCUMENT.replace("end: true", "edn: true");
    has(
        &check(&wrong.replace('\n', "\r\n")).await,
        &["unknown-property", "data-line=\"6\"", "<b>error</b>"],
    );
    let good = check(DOCUMENT).await;
    has(&good, &["✓ It can be deployed as written 1."]);
    assert!(!good.contains("<b>error</b>"), "{good}");
    has(&check(" \n").await, &["Nothing has been checked yet."]);
    let known = dev.get("/api/v1/definitions/waiter").await.is(200);
    let known = known["document"].as_str().unwrap();
    has(&check(known).await, &["deployed like this already"]);
    let other = known.replace("Begin", "Other");
    has(&check(&other).await, &["raise the version"]);
    has(&check(&"a".repeat(1 << 21)).await, &["larger than"]);
    dev.get("/api/v1/definitions/written")
        .await
        .refused(404, "unknown-workflow");
    let cookie = browser.cookie.borrow().clone();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let headers = [("cookie", cookie.as_str()), form];
    let forged = dev.post("/console/deploy/findings", &headers, "document=a");
    assert_eq!(forged.await.status, 403, "no page of the console sent it");
    completed(browser).await;
}

/// The editor's script asks what fits at the cursor.
async fn completed(browser: &Browser<'_>) {
    let asked = async |line: &str| {
        let fields = [("document", DOCUMENT), ("line", line), ("character", "0")];
        browser.send("/deploy/completions", &fields).await
    };
    let found = asked("0").await;
    assert_eq!(found.status, 200, "{}", found.text);
    let found: Value = serde_json::from_str(&found.text).unwrap();
    let labels = found.as_array().unwrap().iter();
    let mut labels = labels.filter_map(|item| item["label"].as_str());
    assert!(labels.any(|label| label == "timeouts"), "{found:#}");
    let wrong = asked("first").await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
    has(&wrong.text, &["must be a whole number"]);
}
