//! Texts of times in a document. Their meaning is in `swirl_model::time` and
//! `swirl_model::schedule`; here are the checks that only a document needs.

pub mod cron;
pub mod duration;
pub mod interval;

use swirl_model::schedule::Zone;
pub use swirl_model::schedule::{LocalError, parse_instant};

/// Whether there is such a time zone: a name of the IANA database, `UTC`, or an offset.
pub fn is_time_zone(name: &str) -> bool {
    Zone::parse(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones() {
        for (name, known) in [
            ("UTC", true),
            ("Europe/Berlin", true),
            ("+02:00", true),
            ("Z", true),
            ("Europe/Nowhere", false),
            ("", false),
            ("../etc/passwd", false),
        ] {
            assert_eq!(is_time_zone(name), known, "{name}");
        }
    }
}
