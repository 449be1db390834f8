//! Cron expressions in documents (docs/language.md#decision-41).

use swirl_model::schedule::Zone;
pub use swirl_model::schedule::{Cron, CronError};
use swirl_model::time::Timestamp;

pub fn parse(text: &str) -> Result<Cron, CronError> {
    Cron::parse(text)
}

/// Whether it denotes no day at all, such as 30 February. If it has no years, they aren't considered.
pub fn never_fires(cron: &Cron) -> bool {
    cron.next_after(Timestamp(0), &Zone::utc()).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_days() {
        for (text, never) in [
            ("0 0 30 2 *", true),
            ("0 0 31 4 *", true),
            ("0 0 29 2 *", false),
            ("0 0 0 29 2 ? 2025", true),
            ("* * * * *", false),
        ] {
            assert_eq!(never_fires(&parse(text).unwrap()), never, "{text}");
        }
    }
}
