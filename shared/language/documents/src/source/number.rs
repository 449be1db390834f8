//! Numbers as documents write them.

use swirl_model::Data;

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

/// The value that JSON text with that number has: 64 bit integers exactly, otherwise a float.
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
