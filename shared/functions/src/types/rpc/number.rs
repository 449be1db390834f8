//! Checks numbers for proto fields. They may be given as JSON numbers or as strings.

use prost_reflect::Kind;

/// Returns the range of a field of this kind if the number isn't in it, otherwise `None`. `given` is the number as
/// written.
pub(super) fn misfit(kind: &Kind, given: &str) -> Option<String> {
    let (min, max) = match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => (i32::MIN.into(), i32::MAX.into()),
        Kind::Uint32 | Kind::Fixed32 => (0, u32::MAX.into()),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => (i64::MIN.into(), i64::MAX.into()),
        Kind::Uint64 | Kind::Fixed64 => (0, u64::MAX.into()),
        Kind::Float => return (!is_float(given, f64::from(f32::MAX))).then(|| float(f32::MAX)),
        Kind::Double => return (!is_float(given, f64::MAX)).then(|| "a number".to_owned()),
        _ => return None,
    };
    match whole(given) {
        Some(number) if (min..=max).contains(&number) => None,
        _ => Some(format!("a whole number from {min} to {max}")),
    }
}

fn float(max: f32) -> String {
    format!("a number from {:e} to {max:e}", -max)
}

/// `1.0` and `1e3` count as whole numbers.
fn whole(given: &str) -> Option<i128> {
    if let Ok(number) = given.parse() {
        return Some(number);
    }
    let number: f64 = given.parse().ok()?;
    // Beyond this a double isn't exact, and no field can hold it.
    (number.fract() == 0.0 && number.abs() < 1e30).then_some(number as i128)
}

fn is_float(given: &str, max: f64) -> bool {
    match given {
        "NaN" | "Infinity" | "-Infinity" => true,
        given => given.parse::<f64>().is_ok_and(|number| number.abs() <= max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_checked_against_the_range_of_their_kind() {
        for (kind, given, fits) in [
            (Kind::Int32, "2147483647", true),
            (Kind::Int32, "2147483648", false),
            (Kind::Int32, "1.0", true),
            (Kind::Int32, "1e3", true),
            (Kind::Int32, "1.5", false),
            (Kind::Int32, "abc", false),
            (Kind::Int32, "", false),
            (Kind::Uint32, "-1", false),
            (Kind::Uint64, "18446744073709551615", true),
            (Kind::Uint64, "18446744073709551616", false),
            (Kind::Int64, "-9223372036854775808", true),
            (Kind::Float, "1e39", false),
            (Kind::Float, "NaN", true),
            (Kind::Double, "1e39", true),
            (Kind::Double, "many", false),
            (Kind::String, "many", true),
        ] {
            assert_eq!(misfit(&kind, given).is_none(), fits, "{kind:?} {given}");
        }
    }
}
