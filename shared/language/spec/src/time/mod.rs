//! Texts with times in documents. Their meaning is in `swirl_model::time` and `swirl_model::schedule`; this module has
//! the checks that only documents need.

pub mod cron;
pub mod duration;
pub mod interval;

use swirl_model::schedule::Zone;
pub use swirl_model::schedule::{LocalError, parse_instant};

/// Whether it is a valid time zone: a name in the IANA database, `UTC`, or an offset.
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
