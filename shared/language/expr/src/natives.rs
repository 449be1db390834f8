//! Functions of jq that jaq lacks, that behave differently there than in jq 1.6, or that it doesn't bound; and the
//! names of functions that expressions must not use.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jaq_core::box_iter::box_once;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{Bind, Cv, Error as JaqError, Native, RunPtr, ValR, ValT as _};
use jaq_json::{Num, Val};
use swirl_model::Data;

use crate::engine::Jq;
use crate::meter;
use crate::value::{self, Error, V, indices};
use crate::{base32, order, regexes, text, times};

/// Functions that an expression must not use, with the reasons.
const REFUSED: [(&str, &str); 16] = [
    ("$ENV", "the environment is not visible to workflows"),
    ("$__prog_args", "there is no command line"),
    (
        "debug",
        "nothing can be printed; use the workflow's history",
    ),
    ("env", "the environment is not visible to workflows"),
    ("get_search_list", "modules are not available"),
    ("halt", "it would end the engine; use `error`"),
    ("halt_error", "it would end the engine; use `error`"),
    ("import", "modules are not available"),
    ("include", "modules are not available"),
    ("input", "there is one input, `.`"),
    ("input_filename", "there is one input, `.`"),
    ("input_line_number", "there is one input, `.`"),
    ("inputs", "there is one input, `.`"),
    ("modulemeta", "modules are not available"),
    (
        "stderr",
        "nothing can be printed; use the workflow's history",
    ),
    (
        "stderr_empty",
        "nothing can be printed; use the workflow's history",
    ),
];

pub(crate) fn refused(name: &str) -> Option<&'static str> {
    REFUSED
        .iter()
        .find(|(refused, _)| *refused == name)
        .map(|(_, why)| *why)
}

/// Functions of jaq's library that aren't used by any definition here.
const UNWANTED: [&str; 10] = [
    "debug_empty",
    "env",
    "halt",
    "localtime",
    "matches",
    "now",
    "split_",
    "split_matches",
    "stderr_empty",
    "strflocaltime",
];

/// The native functions, in the order in which names are looked up.
pub(crate) fn all() -> Vec<Fun<Jq>> {
    let limit = |fun: Fun<Jq>| match fun.0 {
        // The library's own `limit` is wrapped in the prelude.
        "limit" => ("limit_", fun.1, fun.2),
        "gmtime" => ("_gmtime", fun.1, fun.2),
        "strftime" => ("_strftime", fun.1, fun.2),
        "strptime" => ("_strptime", fun.1, fun.2),
        _ => fun,
    };
    let wanted = |fun: &Fun<Jq>| !UNWANTED.contains(&fun.0);
    let core = jaq_core::funs().map(limit);
    let std = jaq_std::funs().filter(wanted).map(limit);
    let own = own().into_iter().map(run::<Jq>);
    // The library's own definitions use the first name, the prelude the second.
    let ranges = jaq_core::funs().filter(|fun| fun.0 == "range");
    let ranges = ranges.map(|(_, args, native)| ("_range", args, native));
    let own = own.chain([chained()]).chain(ranges);
    own.chain(core).chain(std).collect()
}

/// `_chained`: the identity function, counted; see [`meter::chained_call`].
fn chained() -> Fun<Jq> {
    let count = Native::new(|cv: Cv<'_, Jq>| {
        meter::chained_call();
        box_once(Ok(cv.1))
    });
    let count = count
        .with_paths(|cv| {
            meter::chained_call();
            box_once(Ok(cv.1))
        })
        .with_update(|cv, f| {
            meter::chained_call();
            f(cv.1)
        });
    ("_chained", v(0), count)
}

pub(crate) fn fun(name: &'static str, run: RunPtr<Jq>) -> Filter<RunPtr<Jq>> {
    (name, v(0), run)
}

fn fun_of(name: &'static str, arity: usize, run: RunPtr<Jq>) -> Filter<RunPtr<Jq>> {
    (
        name,
        std::iter::repeat_n(Bind::Var(()), arity).collect(),
        run,
    )
}

/// The names and arities of the functions here, which replace jaq's definitions with the same names.
pub(crate) fn own_names() -> Vec<(&'static str, usize)> {
    own()
        .iter()
        .map(|(name, args, _)| (*name, args.len()))
        .collect()
}

fn own() -> Vec<Filter<RunPtr<Jq>>> {
    vec![
        fun("_ascii_downcase", |cv| {
            bome(map_text(&cv.1, str::to_ascii_lowercase))
        }),
        fun("_ascii_upcase", |cv| {
            bome(map_text(&cv.1, str::to_ascii_uppercase))
        }),
        fun("_decode_base32", |cv| bome(decode_base32(&cv.1))),
        fun("_decode_base64", |cv| bome(decode_base64(&cv.1))),
        fun("_encode_base32", |cv| bome(encode_base32(&cv.1))),
        fun("_escape_html", |cv| bome(map_text(&cv.1, escape_html))),
        fun("_infinite", |_| bome(Ok(V::from(f64::INFINITY)))),
        fun("_isnan", |cv| {
            bome(Ok(V::from(cv.1.number().is_some_and(f64::is_nan))))
        }),
        fun("_instant", |cv| bome(times::instant(cv.1))),
        fun("_nan", |_| bome(Ok(V::from(f64::NAN)))),
        fun("false", |_| bome(Ok(V::from(false)))),
        fun("fromjson", |cv| bome(from_json(&cv.1))),
        fun("length", |cv| bome(length(&cv.1))),
        fun("lgamma_r", |cv| bome(lgamma_r(&cv.1))),
        fun("logb", |cv| {
            bome(number(&cv.1, "logb").map(|float| V::from(logb(float))))
        }),
        fun("mktime", |cv| bome(times::seconds(&cv.1))),
        fun("now", |_| bome(Ok(now()))),
        fun("null", |_| bome(Ok(V::null()))),
        fun("significand", |cv| {
            bome(number(&cv.1, "significand").map(|float| V::from(significand(float))))
        }),
        fun("tojson", |cv| bome(Ok(V::from(text::json(&cv.1.val))))),
        fun("tonumber", |cv| bome(to_number(&cv.1))),
        fun("tostring", |cv| bome(Ok(cv.1.into_string()))),
        fun("true", |_| bome(Ok(V::from(true)))),
        fun("type", |cv| bome(Ok(V::str(cv.1.kind())))),
        fun_of("_delpath", 1, |cv| one(cv, delete)),
        fun_of("_indices", 1, |cv| {
            one(cv, |whole, part| indices(&whole, &part))
        }),
        fun_of("_time_format", 1, |cv| {
            one(cv, |_, format| times::format(&format))
        }),
        fun_of("_without_day", 1, |cv| {
            one(cv, |parts, has_month| {
                times::without_day(&parts, &has_month)
            })
        }),
        fun_of("_match", 2, |cv| two(cv, regexes::matches)),
        fun_of("_parts", 2, |cv| two(cv, regexes::parts)),
        fun_of("_split", 1, |cv| {
            one(cv, |text, separator| split(&text, &separator))
        }),
        fun_of("_test", 2, |cv| two(cv, regexes::test)),
        fun_of("bsearch", 1, |cv| {
            one(cv, |items, wanted| search(&items, &wanted))
        }),
        fun_of("contains", 1, |cv| {
            one(cv, |whole, part| contains(&whole, &part))
        }),
        fun_of("endswith", 1, |cv| {
            one(cv, |text, end| {
                fixes(&text, &end, "endswith").map(|(text, end)| V::from(text.ends_with(end)))
            })
        }),
        fun_of("has", 1, |cv| one(cv, |value, key| has(&value, &key))),
        fun_of("join", 1, |cv| {
            one(cv, |items, separator| join(&items, &separator))
        }),
        fun_of("ltrimstr", 1, |cv| {
            one(cv, |text, start| {
                Ok(trim(text, &start, |text, start| text.strip_prefix(start)))
            })
        }),
        fun_of("rtrimstr", 1, |cv| {
            one(cv, |text, end| {
                Ok(trim(text, &end, |text, end| text.strip_suffix(end)))
            })
        }),
        fun_of("startswith", 1, |cv| {
            one(cv, |text, start| {
                fixes(&text, &start, "startswith")
                    .map(|(text, start)| V::from(text.starts_with(start)))
            })
        }),
    ]
}

fn one<'a>(mut cv: Cv<'a, Jq>, f: fn(V, V) -> ValR<V>) -> jaq_core::ValXs<'a, V> {
    let argument = cv.0.pop_var();
    bome(f(cv.1, argument))
}

fn two<'a>(mut cv: Cv<'a, Jq>, f: fn(&V, &V, &V) -> ValR<V>) -> jaq_core::ValXs<'a, V> {
    let second = cv.0.pop_var();
    let first = cv.0.pop_var();
    bome(f(&cv.1, &first, &second))
}

fn map_text(value: &V, f: impl FnOnce(&str) -> String) -> ValR<V> {
    let text = value
        .as_str()
        .ok_or_else(|| value.fail("cannot be used as a string"))?;
    meter::charge(text.len());
    Ok(V::from(f(text)))
}

fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

fn decode_base64(value: &V) -> ValR<V> {
    // With or without padding, as in jq.
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let text = value.try_str()?;
    meter::charge(text.len());
    match GeneralPurpose::new(&STANDARD, lenient).decode(text) {
        Ok(bytes) => Ok(jaq_std::ValT::from_utf8_bytes(bytes)),
        Err(_) => Err(value.fail("is not valid base64 data")),
    }
}

fn encode_base32(value: &V) -> ValR<V> {
    let text = value.try_str()?;
    meter::text(text.len().saturating_mul(2));
    Ok(V::from(base32::encode(text.as_bytes())))
}

fn decode_base32(value: &V) -> ValR<V> {
    let text = value.try_str()?;
    meter::charge(text.len());
    match base32::decode(text) {
        Some(bytes) => Ok(jaq_std::ValT::from_utf8_bytes(bytes)),
        None => Err(value.fail("is not valid base32 data")),
    }
}

fn from_json(value: &V) -> ValR<V> {
    let text = value
        .as_str()
        .ok_or_else(|| value.fail("only strings can be parsed"))?;
    meter::charge(text.len().saturating_mul(4));
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Error::str("Expected JSON value (while parsing '')"));
    }
    if let Some(float) = not_finite(trimmed) {
        return Ok(V::from(float));
    }
    let Data(val) = Data::parse(text.as_bytes())
        .map_err(|error| Error::str(format_args!("{error} (while parsing '{value}')")))?;
    Ok(V::new(val))
}

fn length(value: &V) -> ValR<V> {
    Ok(match &value.val {
        Val::Null => V::from(0usize),
        Val::Bool(_) => return Err(value.fail("has no length")),
        Val::Num(number) if order::float(number) < 0.0 => V::num(-number.clone()),
        Val::Num(_) => value.clone(),
        Val::TStr(_) | Val::BStr(_) => {
            let text = value.try_str()?;
            meter::work(text.len() / 64);
            V::from(text.chars().count())
        }
        Val::Arr(items) => V::from(items.len()),
        Val::Obj(map) => V::from(map.len()),
    })
}

fn number(value: &V, name: &str) -> Result<f64, Error> {
    value
        .number()
        .ok_or_else(|| value.fail(&format!("number required for {name}")))
}

/// The exponent of 2 in a number.
fn logb(float: f64) -> f64 {
    match float {
        _ if float == 0.0 => f64::NEG_INFINITY,
        _ if !float.is_finite() => float.abs(),
        _ => exponent(float),
    }
}

fn significand(float: f64) -> f64 {
    match float == 0.0 || !float.is_finite() {
        true => float,
        // In two steps, because the power may exceed the range of floats.
        false => {
            let exponent = exponent(float) as i32;
            float / 2f64.powi(exponent / 2) / 2f64.powi(exponent - exponent / 2)
        }
    }
}

fn exponent(float: f64) -> f64 {
    let biased = |float: f64| ((float.to_bits() >> 52) & 0x7ff) as f64;
    match float.is_normal() {
        true => biased(float) - 1023.0,
        false => biased(float * 2f64.powi(64)) - 1023.0 - 64.0,
    }
}

/// The logarithm of the gamma function, and its sign.
fn lgamma_r(value: &V) -> ValR<V> {
    let (log, sign) = libm::lgamma_r(number(value, "lgamma_r")?);
    Ok(V::array(vec![V::from(log), V::from(sign as isize)]))
}

fn now() -> V {
    let ms = meter::now_ms();
    if ms % 1000 == 0 {
        V::num(Num::from_integral(ms / 1000))
    } else {
        V::from(ms as f64 / 1000.0)
    }
}

/// The words that jq's parser accepts as numbers, in any case.
fn not_finite(text: &str) -> Option<f64> {
    let (sign, word) = match text.strip_prefix(['-', '+']) {
        Some(word) if text.starts_with('-') => (-1.0, word),
        Some(word) => (1.0, word),
        None => (1.0, text),
    };
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    if is("nan") {
        Some(f64::NAN)
    } else if is("inf") || is("infinity") {
        Some(sign * f64::INFINITY)
    } else {
        None
    }
}

fn to_number(value: &V) -> ValR<V> {
    match &value.val {
        Val::Num(_) => Ok(value.clone()),
        Val::TStr(_) => {
            let text = value.try_str()?.trim();
            match (order::parse(text), not_finite(text)) {
                (Some(number), _) => Ok(V::num(number)),
                (None, Some(float)) => Ok(V::from(float)),
                (None, None) => Err(value.fail("cannot be parsed as a number")),
            }
        }
        _ => Err(value.fail("cannot be parsed as a number")),
    }
}

/// Removes the value at the path. A missing path changes nothing.
fn delete(value: V, path: V) -> ValR<V> {
    fn delete(value: V, path: &[Val]) -> ValR<V> {
        let Some((first, rest)) = path.split_first() else {
            return Ok(V::null());
        };
        let key = V::new(first.clone());
        if matches!(value.val, Val::Null) {
            return Ok(value);
        }
        if !matches!(first, Val::Obj(_)) && value.member(&key)?.is_none() {
            return Ok(value);
        }
        let essential = jaq_core::path::Opt::Essential;
        let changed = value.map_index(&key, essential, |child| {
            let new = if rest.is_empty() {
                Ok(None)
            } else {
                delete(child, rest).map(Some)
            };
            new.map_err(jaq_core::Exn::from).transpose().into_iter()
        });
        changed.map_err(|exn| {
            exn.get_err()
                .unwrap_or_else(|_| Error::str("cannot be deleted"))
        })
    }
    match path.as_array() {
        Some(path) => delete(value, path),
        None => Err(Error::str("Path must be specified as an array")),
    }
}

fn split(text: &V, separator: &V) -> ValR<V> {
    match (text.as_str(), separator.as_str()) {
        (Some(_), Some(separator)) => value::split(text, separator),
        _ => Err(Error::str("split input and separator must be strings")),
    }
}

fn search(items: &V, wanted: &V) -> ValR<V> {
    let items = items
        .as_array()
        .ok_or_else(|| items.fail("cannot be searched from"))?;
    Ok(
        match items.binary_search_by(|item| order::compare(item, &wanted.val)) {
            Ok(at) => V::from(at),
            Err(at) => V::from(-1 - at as isize),
        },
    )
}

fn contains(whole: &V, part: &V) -> ValR<V> {
    match order::contains(&whole.val, &part.val) {
        Some(contains) => Ok(V::from(contains)),
        None => Err(crate::value::both(
            whole,
            part,
            "cannot have their containment checked",
        )),
    }
}

fn fixes<'a>(text: &'a V, fix: &'a V, name: &str) -> Result<(&'a str, &'a str), Error> {
    let fail = || Error::str(format_args!("{name}() requires string inputs"));
    Ok((
        text.as_str().ok_or_else(fail)?,
        fix.as_str().ok_or_else(fail)?,
    ))
}

/// Values other than strings stay unchanged.
fn trim(text: V, fix: &V, strip: for<'a> fn(&'a str, &'a str) -> Option<&'a str>) -> V {
    let rest = match (text.as_str(), fix.as_str()) {
        (Some(whole), Some(fix)) => strip(whole, fix),
        _ => None,
    };
    match rest {
        Some(rest) => jaq_std::ValT::as_sub_str(&text, rest.as_bytes()),
        None => text,
    }
}

fn has(value: &V, key: &V) -> ValR<V> {
    match (&value.val, &key.val) {
        (Val::Null, Val::TStr(_) | Val::Num(_)) => Ok(V::from(false)),
        (Val::Obj(_), Val::TStr(_)) => Ok(V::from(value.member(key)?.is_some())),
        (Val::Arr(items), Val::Num(index)) => {
            let index = order::float(index).trunc();
            Ok(V::from(index >= 0.0 && index < items.len() as f64))
        }
        _ => Err(JaqError::str(format_args!(
            "Cannot check whether {} has a {} key",
            value.kind(),
            key.kind()
        ))),
    }
}

fn join(items: &V, separator: &V) -> ValR<V> {
    let between = separator;
    let values: Vec<V> = match &items.val {
        Val::Arr(_) => jaq_std::ValT::into_seq(items.clone()).unwrap_or_default(),
        _ => items.clone().values().collect::<Result<_, _>>()?,
    };
    let mut out = String::new();
    for (n, value) in values.iter().enumerate() {
        // A separator that isn't used may have any type.
        if n > 0 && !matches!(between.val, Val::Null) {
            out.push_str(between.try_str()?);
        }
        match &value.val {
            Val::Null => {}
            Val::TStr(_) => out.push_str(value.try_str()?),
            Val::Bool(_) | Val::Num(_) => out.push_str(&text::json(&value.val)),
            _ => return Err(crate::value::both(&V::from(out), value, "cannot be added")),
        }
        meter::work(1);
        if n % 64 == 0 {
            meter::text(out.len());
        }
    }
    Ok(V::from(out))
}
