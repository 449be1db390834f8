//! Values as text, for `tojson` and error messages; and the check of results.

use std::fmt::Write;

use jaq_json::{Num, Val};
use swirl_model::Data;

use crate::meter::{self, Abort, Limits};

pub(crate) fn kind(val: &Val) -> &'static str {
    match val {
        Val::Null => "null",
        Val::Bool(_) => "boolean",
        Val::Num(_) => "number",
        Val::BStr(_) | Val::TStr(_) => "string",
        Val::Arr(_) => "array",
        Val::Obj(_) => "object",
    }
}

/// Compact JSON.
pub(crate) fn json(val: &Val) -> String {
    let mut out = String::new();
    write(val, &mut out, usize::MAX);
    out
}

/// The beginning of the JSON text, for messages.
pub(crate) fn shortened(val: &Val) -> String {
    const CHARS: usize = 60;
    let mut out = String::new();
    write(val, &mut out, CHARS);
    match out.char_indices().nth(CHARS) {
        None => out,
        Some((at, _)) => {
            out.truncate(at);
            out + "..."
        }
    }
}

/// Appends the JSON text, but stops when it has `enough` bytes.
fn write(val: &Val, out: &mut String, enough: usize) {
    meter::charge(8);
    if out.len() > enough {
        return;
    }
    match val {
        Val::Null => out.push_str("null"),
        Val::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Val::Num(number) => write_number(number, out),
        Val::BStr(text) | Val::TStr(text) => {
            let text = String::from_utf8_lossy(text);
            let shown = match text.char_indices().nth(enough) {
                Some((at, _)) => &text[..at],
                None => &text,
            };
            meter::text(out.len().saturating_add(shown.len()));
            out.push_str(&serde_json::to_string(shown).unwrap_or_default());
        }
        Val::Arr(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                if out.len() > enough {
                    break;
                }
                write(item, out, enough);
            }
            out.push(']');
        }
        Val::Obj(map) => {
            out.push('{');
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                if out.len() > enough {
                    break;
                }
                write(key, out, enough);
                out.push(':');
                write(value, out, enough);
            }
            out.push('}');
        }
    }
}

fn write_number(number: &Num, out: &mut String) {
    // Integers beyond the machine's range are written in full here; as data they are floats.
    let _ = match number {
        Num::Int(int) => write!(out, "{int}"),
        Num::BigInt(int) => write!(out, "{int}"),
        Num::Float(float) if *float == 0.0 && float.is_sign_negative() => write!(out, "-0"),
        // In the notation of C.
        Num::Float(float) if float.abs() < 1e-4 && *float != 0.0 => {
            let text = format!("{float:e}");
            match text.split_once("e-") {
                Some((digits, exponent)) => write!(out, "{digits}e-{exponent:0>2}"),
                None => write!(out, "{text}"),
            }
        }
        _ => write!(out, "{}", Data(Val::Num(number.clone()))),
    };
}

/// Converts a result to data within the limits, with numbers that JSON has. NaN becomes null and infinity the largest
/// number, as when jq prints them.
pub(crate) fn result(val: Val, limits: &Limits) -> Val {
    let mut odd = false;
    let mut left = limits.output_bytes;
    check(&val, limits.output_depth, &mut left, &mut odd);
    if odd { tidy(val) } else { val }
}

fn check(val: &Val, depth: usize, left: &mut usize, odd: &mut bool) {
    meter::tick();
    let bytes = match val {
        Val::TStr(text) | Val::BStr(text) => text.len() + 2,
        Val::Num(Num::Float(float)) if !float.is_finite() => {
            *odd = true;
            8
        }
        _ => 4,
    };
    match left.checked_sub(bytes) {
        Some(rest) => *left = rest,
        None => meter::abort(Abort::Output),
    }
    let below = || {
        depth.checked_sub(1).unwrap_or_else(|| {
            meter::abort(Abort::Depth);
            0
        })
    };
    match val {
        Val::Arr(items) => {
            let depth = below();
            items.iter().for_each(|item| check(item, depth, left, odd));
        }
        Val::Obj(map) => {
            let depth = below();
            for (key, value) in map.iter() {
                check(key, depth, left, odd);
                check(value, depth, left, odd);
            }
        }
        _ => {}
    }
}

fn tidy(val: Val) -> Val {
    match val {
        Val::Num(Num::Float(float)) if float.is_nan() => Val::Null,
        Val::Num(Num::Float(float)) if float.is_infinite() => {
            Val::Num(Num::Float(f64::MAX.copysign(float)))
        }
        Val::Arr(items) => items.iter().cloned().map(tidy).collect(),
        Val::Obj(map) => Val::obj(
            map.iter()
                .map(|(k, v)| (k.clone(), tidy(v.clone())))
                .collect(),
        ),
        val => val,
    }
}
