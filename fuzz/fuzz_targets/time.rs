//! Any text as a time: instants, durations, cron expressions, intervals, time zones. Calculating with a parsed value
//! must not panic, even far from now, and each next instant must be later.

#![no_main]

use libfuzzer_sys::fuzz_target;
use swirl_model::schedule::Calendar;
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{Schedule, When};

const NOW: Timestamp = Timestamp(1_704_067_200_000);

fuzz_target!(|text: &str| {
    // The zone is after the last bar.
    let (text, zone) = match text.rsplit_once('|') {
        Some((text, zone)) => (text, Some(zone.to_owned())),
        None => (text, None),
    };
    if let Ok(at) = Timestamp::parse(text) {
        let _ = at.plus_ms(u64::MAX);
    }
    if let Ok(duration) = IsoDuration::parse(text) {
        // The last two are near the ends of what a calendar holds.
        for at in [NOW.0, 0, -377_705_000_000_000, 253_402_200_000_000] {
            let at = Timestamp(at);
            assert!(duration.add_to(at) >= at, "a duration leads back");
            let _ = duration.millis_from(at);
        }
        for at in [i64::MIN, i64::MAX] {
            let _ = duration.add_to(Timestamp(at));
            let _ = duration.millis_from(Timestamp(at));
        }
        let _ = duration.is_zero();
    }
    let (expression, valid_until) = match text.split_once(';') {
        Some((expression, until)) => (expression, Some(until.into())),
        None => (text, None),
    };
    let rules = [
        When::Cron {
            expression: expression.into(),
            valid_until,
        },
        When::Interval(text.into()),
        When::After(text.into()),
        When::Window(text.into()),
    ];
    for when in rules {
        for exclusive in [true, false] {
            let schedule = Schedule {
                when: when.clone(),
                timezone: zone.clone().map(Into::into),
                exclusive,
            };
            let Ok(calendar) = Calendar::new(&schedule) else {
                continue;
            };
            let mut at = NOW;
            for _ in 0..4 {
                let _ = calendar.allows(at, NOW);
                match calendar.next_after(at, NOW) {
                    Some(next) => {
                        assert!(next > at, "what comes next comes later");
                        at = next;
                    }
                    None => break,
                }
            }
            for at in [i64::MIN, 0, i64::MAX] {
                let _ = calendar.next_after(Timestamp(at), NOW);
                let _ = calendar.allows(Timestamp(at), NOW);
            }
        }
    }
});
