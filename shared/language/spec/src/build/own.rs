//! `metadata.swirl`: the part of the metadata that this runtime reads. Every edition leaves metadata to its users.
//! Search attributes are in [`super::search`].

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::instance::{EndStatus, Retention};
use swirl_model::time::Timestamp;
use swirl_model::workflow::Recording;

use super::ctx::Ctx;
use super::values::OWN;

/// The members of `metadata.swirl`.
const SEARCH: &str = "search";
const RETENTION: &str = "retention";
const HISTORY: &str = "history";

impl Ctx<'_> {
    /// Reads the declarations. The rest of the definition has been read, so its functions and secrets are known.
    pub fn own_metadata(&mut self, root: &Node) {
        let Some(own) = root.get("metadata").and_then(|all| all.get(OWN)) else {
            return;
        };
        // A text belongs to the author.
        if own.members().is_none() {
            return;
        }
        let Some(obj) = self.object(own, "'metadata.swirl'", &[SEARCH, RETENTION, HISTORY]) else {
            return;
        };
        if let Some(node) = obj.get(SEARCH) {
            self.search_attributes(node);
        }
        if let Some(node) = obj.get(RETENTION) {
            self.retention(node);
        }
        if let Some(node) = obj.get(HISTORY) {
            self.history(node);
        }
        self.workflow.metadata = without(&self.workflow.metadata, OWN);
    }

    fn retention(&mut self, node: &Node) {
        let outcomes = Retention::OUTCOMES.map(EndStatus::as_str);
        let Some(obj) = self.object(node, "'metadata.swirl.retention'", &outcomes) else {
            return;
        };
        for outcome in Retention::OUTCOMES {
            let Some(node) = obj.get(outcome.as_str()) else {
                continue;
            };
            let what = format!("'{}'", outcome.as_str());
            let Some(period) = self.duration(node, &what) else {
                continue;
            };
            let ms = period.fixed().map(|fixed| fixed.millis_from(Timestamp(0)));
            match ms.filter(|ms| (Retention::MIN_MS..=Retention::MAX_MS).contains(ms)) {
                Some(ms) => self.workflow.retention.set(outcome, ms),
                None => self.error(
                    node,
                    codes::BAD_RETENTION,
                    format!("{what} isn't a time for which instances can be kept"),
                    "give a constant duration of one second to 3650 days, such as 'P30D'"
                        .to_owned(),
                ),
            }
        }
    }

    fn history(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "'metadata.swirl.history'", &["data", "keepData"]) else {
            return;
        };
        let word = self.word(obj, "data", &Recording::ALL.map(Recording::as_str));
        self.workflow.recording = word.and_then(Recording::of_word);
        let Some(node) = obj.get("keepData") else {
            return;
        };
        let Some(period) = self.duration(node, "'keepData'") else {
            return;
        };
        let ms = period.fixed().map(|fixed| fixed.millis_from(Timestamp(0)));
        match ms.filter(|ms| (Recording::KEEP_MS_MIN..=Retention::MAX_MS).contains(ms)) {
            Some(ms) => self.workflow.keep_data_ms = Some(ms),
            None => self.error(
                node,
                codes::BAD_RETENTION,
                "'keepData' isn't a time for which recorded data can be kept".to_owned(),
                "give a constant duration of one minute to 3650 days, such as 'P7D'".to_owned(),
            ),
        }
    }
}

/// The other members.
fn without(data: &Data, member: &str) -> Data {
    let mut others = Data::object();
    let members = data.as_object().into_iter();
    for (key, value) in members.flat_map(|members| members.iter()) {
        let key = Data(key.clone()).to_text();
        if key != member {
            others.set(&key, Data(value.clone()));
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use swirl_model::instance::Retention;
    use swirl_model::workflow::Recording;

    use crate::build::parts::testing::{STATES, findings, workflow};

    const DAY: u64 = 24 * 3_600_000;

    fn document(own: &str) -> String {
        format!("metadata: {{team: a, swirl: {{{own}}}}}\n{STATES}")
    }

    #[test]
    fn retention_and_history_are_declared() {
        let found = workflow(&document(
            "retention: {completed: PT1H, faulted: P90D}, history: {data: all, keepData: P7D}",
        ));
        let expected = Retention {
            completed: Some(DAY / 24),
            faulted: Some(90 * DAY),
            ..Retention::default()
        };
        assert_eq!(found.retention, expected);
        assert_eq!(found.recording, Some(Recording::All));
        assert_eq!(found.keep_data_ms, Some(7 * DAY));
        assert_eq!(found.metadata.to_string(), r#"{"team":"a"}"#);
        let none = workflow(&document(""));
        assert!(none.retention.is_empty() && none.recording.is_none());
        assert_eq!(none.keep_data_ms, None);
    }

    #[test]
    fn errors_are_reported_at_their_location() {
        let at = "/metadata/swirl";
        for (own, expected) in [
            (
                "retention: {completed: PT0S}",
                format!("error bad-retention {at}/retention/completed"),
            ),
            (
                "retention: {faulted: P3651D}",
                format!("error bad-retention {at}/retention/faulted"),
            ),
            (
                "retention: {faulted: 90d}",
                format!("error bad-duration {at}/retention/faulted"),
            ),
            (
                "retention: {failed: P1D}",
                format!("error unknown-property {at}/retention/failed"),
            ),
            ("retention: P1D", format!("error wrong-type {at}/retention")),
            (
                "history: {data: some}",
                format!("error unknown-value {at}/history/data"),
            ),
            (
                "history: {keepData: PT59S}",
                format!("error bad-retention {at}/history/keepData"),
            ),
            (
                "history: {keepData: 7d}",
                format!("error bad-duration {at}/history/keepData"),
            ),
            ("history: all", format!("error wrong-type {at}/history")),
        ] {
            let found = findings(&document(own));
            let found = found.trim_end_matches(|c: char| c.is_ascii_digit()).trim();
            assert_eq!(found, expected, "{own}");
        }
    }
}
