//! Plain scalars by YAML's core schema.
//!
//! `yes`, `no`, `on`, `off` and dates are texts; `012` is twelve.

use super::node::Value;
use super::number::{as_f64, is_number};

/// The meaning of a plain scalar.
pub(super) enum Plain {
    Value(Value),
    /// Infinity, NaN, or a number that is too large for a float.
    NotFinite,
}

pub(super) fn plain(text: &str) -> Plain {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null(text.into()),
        "true" | "True" | "TRUE" => Value::Bool(true, text.into()),
        "false" | "False" | "FALSE" => Value::Bool(false, text.into()),
        _ if is_special(text) => return Plain::NotFinite,
        _ if is_number(text) => match as_f64(text) {
            Some(_) => Value::Number(text.into()),
            None => return Plain::NotFinite,
        },
        _ => Value::String(text.into()),
    };
    Plain::Value(value)
}

fn is_special(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// Whether YAML 1.1 would have read a different number: there, `012` is ten.
pub(super) fn is_old_octal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::number::to_data;
    use super::*;

    fn show(text: &str) -> String {
        match plain(text) {
            Plain::NotFinite => "not finite".to_owned(),
            Plain::Value(Value::Null(_)) => "null".to_owned(),
            Plain::Value(Value::Bool(value, _)) => value.to_string(),
            Plain::Value(Value::Number(raw)) => to_data(&raw).to_string(),
            Plain::Value(Value::String(text)) => format!("'{text}'"),
            Plain::Value(_) => String::new(),
        }
    }

    #[test]
    fn core_schema() {
        for (text, value) in [
            ("", "null"),
            ("~", "null"),
            ("NULL", "null"),
            ("nULL", "'nULL'"),
            ("yes", "'yes'"),
            ("No", "'No'"),
            ("on", "'on'"),
            ("OFF", "'OFF'"),
            ("TRUE", "true"),
            ("0.8", "0.8"),
            ("1.0", "1"),
            ("1.", "1"),
            (".5", "0.5"),
            ("+7", "7"),
            ("-0x1F", "'-0x1F'"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("012", "12"),
            ("1_000", "'1_000'"),
            ("1e3", "1000"),
            ("1e", "'1e'"),
            (".", "'.'"),
            ("-", "'-'"),
            ("12:30", "'12:30'"),
            ("2024-01-31", "'2024-01-31'"),
            ("1.2.3", "'1.2.3'"),
            (".inf", "not finite"),
            ("-.INF", "not finite"),
            (".NaN", "not finite"),
            ("nan", "'nan'"),
            ("inf", "'inf'"),
            ("1e999", "not finite"),
            ("9223372036854775807", "9223372036854775807"),
            ("18446744073709551615", "18446744073709551615"),
            ("0xFFFFFFFFFFFFFFFFFF", "not finite"),
            ("\u{e9}\u{e9}", "'\u{e9}\u{e9}'"),
        ] {
            assert_eq!(show(text), value, "{text}");
        }
    }
}
