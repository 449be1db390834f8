//! Plain scalars by YAML's core schema, and numbers as data.
//!
//! `yes`, `no`, `on`, `off` and dates are texts; `012` is twelve.

use swirl_model::Data;

use super::node::Value;

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

/// `0o17` and `0x1F`.
fn radix(text: &str) -> Option<(u32, &str)> {
    let (radix, digits) = match text.get(..2)? {
        "0o" => (8, &text[2..]),
        "0x" => (16, &text[2..]),
        _ => return None,
    };
    (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix))).then_some((radix, digits))
}

pub(super) fn is_number(text: &str) -> bool {
    if radix(text).is_some() {
        return true;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    mantissa && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

/// Whether YAML 1.1 would have read another number: `012` is ten there.
pub(super) fn is_old_octal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.bytes().all(|b| b.is_ascii_digit())
}

pub(super) fn as_f64(raw: &str) -> Option<f64> {
    let float = match radix(raw) {
        Some((radix, digits)) => u64::from_str_radix(digits, radix).ok()? as f64,
        None => raw.parse().ok()?,
    };
    float.is_finite().then_some(float)
}

pub(super) fn as_i64(raw: &str) -> Option<i64> {
    if let Some((radix, digits)) = radix(raw) {
        return i64::from_str_radix(digits, radix).ok();
    }
    if let Ok(int) = raw.parse() {
        return Some(int);
    }
    let float = as_f64(raw)?;
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
}

/// The value that JSON text with that number gives: integers of 64 bits exactly, otherwise a float.
pub(super) fn to_data(raw: &str) -> Data {
    if (raw.parse::<i64>().is_ok() || radix(raw).is_some())
        && let Some(int) = as_i64(raw)
    {
        return Data::int(int);
    }
    let number = match raw.parse::<u64>() {
        Ok(int) => serde_json::Value::from(int),
        Err(_) => serde_json::Value::from(as_f64(raw).unwrap_or(f64::MAX)),
    };
    Data::from(number)
}

#[cfg(test)]
mod tests {
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
