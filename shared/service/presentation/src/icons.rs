//! Small icons, drawn with lines in a 16 by 16 square.

use super::line::Sign;

/// The icon for a kind of state, by its name in the language.
pub(super) fn kind(word: &str) -> &'static str {
    match word {
        // An arrow that leaves and comes back.
        "callback" => "M3 5h8a3 3 0 0 1 0 7H5M7 9.5L4.5 12L7 14.5",
        // An envelope.
        "event" | "listen" | "emit" => "M2 4h12v9H2zM2 4l6 5l6-5",
        // A loop.
        "foreach" | "for" => "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
        // An arrow into a tray.
        "inject" | "set" => "M8 2v7M5 6.5L8 9.5L11 6.5M2 10v4h12v-4",
        // A gear.
        "operation" | "call" | "run" => {
            "M8 5.2a2.8 2.8 0 1 0 .01 0zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4"
        }
        // Parallel lines.
        "parallel" | "fork" => "M4 3v10M8 3v10M12 3v10",
        // A clock.
        "sleep" | "wait" => "M8 2a6 6 0 1 0 .01 0zM8 4.5V8l2.5 1.5",
        // A diamond.
        "switch" => "M8 1.5L14.5 8L8 14.5L1.5 8z",
        _ => "M3 3h10v10H3z",
    }
}

/// The icon before a line.
pub(super) fn line(sign: Sign) -> &'static str {
    match sign {
        Sign::None => "",
        Sign::Again => kind("foreach"),
        Sign::Action => "M4 3l8 5l-8 5z",
        Sign::In => "M2 4h12v9H2zM2 4l6 5l6-5",
        // The same icon, but filled; see `class`.
        Sign::Out => "M2 4h12v9H2zM2 4l6 5l6-5",
        Sign::Subflow => "M2 3h12v10H2zM8 5.5v5M5.5 8h5",
        Sign::Time => kind("sleep"),
    }
}

/// The class of an icon. The icon for a produced event is filled.
pub(super) fn class(sign: Sign) -> &'static str {
    if sign == Sign::Out {
        "sign out"
    } else {
        "sign"
    }
}
