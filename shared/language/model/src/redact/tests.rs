use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;
use crate::data;

const SECRET: &str = "pa\"ss & wör%d/+😀\\z";

fn cut(text: &str) -> String {
    Redactor::new([SECRET]).text(text).into_owned()
}

fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(text: &str, upper: bool) -> String {
    let byte = |byte: u8| match upper {
        true => format!("%{byte:02X}"),
        false => format!("%{byte:02x}"),
    };
    text.bytes()
        .map(|b| match b.is_ascii_alphanumeric() {
            true => char::from(b).to_string(),
            false => byte(b),
        })
        .collect()
}

#[test]
fn each_form_is_cut_out() {
    let ascii: String = SECRET
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04X}"),
        })
        .collect();
    let html = SECRET.replace('&', "&amp;").replace('"', "&quot;");
    let numbered: String = SECRET
        .chars()
        .map(|c| format!("&#x{:X};", u32::from(c)))
        .collect();
    let latin: String = SECRET.bytes().map(char::from).collect();
    let form = percent(SECRET, true).replace("%20", "+");
    for shown in [
        SECRET.to_owned(),
        json(SECRET),
        json(&json(SECRET)),
        json(&json(&json(SECRET))),
        json(SECRET).replace('/', "\\/"),
        ascii.clone(),
        ascii.to_lowercase(),
        json(&ascii),
        percent(SECRET, true),
        percent(SECRET, false),
        percent(SECRET, true).replace('%', "%25"),
        form.clone(),
        form.replace("%2F", "/"),
        html.clone(),
        html.replace('&', "&amp;"),
        numbered,
        latin,
        format!("{SECRET:?}").trim_matches('"').to_owned(),
        SECRET.escape_unicode().to_string(),
        SECRET
            .replace('ö', "\u{fffd}")
            .replace('😀', "\u{fffd}\u{fffd}"),
        forms_hex(SECRET),
        forms_hex(SECRET).to_uppercase(),
        apart(SECRET, ":"),
        apart(SECRET, "-").to_uppercase(),
        apart(SECRET, " "),
    ] {
        assert_eq!(cut(&format!("<{shown}>")), "<***>", "{shown}");
        assert_eq!(cut(&format!("{shown}{shown}")), "******", "{shown}");
    }
}

fn forms_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn apart(text: &str, between: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(between)
}

#[test]
fn base64_is_cut_out_of_lines() {
    let encoded = STANDARD.encode(format!("user:{SECRET}"));
    for width in [4, 7, 20] {
        for line_break in ["\n", "\r\n", "\\r\\n", "\\n", "%0A", "\n  "] {
            let lines: Vec<&str> = encoded
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let shown = lines.join(line_break);
            let found = cut(&shown);
            assert!(found.contains("***"), "{shown}");
            let left: String = found.replace("***", "");
            // The rest of it belongs to the text around the secret.
            let in_lines = |text: &str| text.len() >= 8 && shown.contains(text);
            assert!(
                !in_lines(left.trim()) || left.len() <= 2 * width + 8,
                "{shown}: {found}"
            );
        }
    }
    assert_eq!(cut("a\nb\r\nc"), "a\nb\r\nc");
}

#[test]
fn numbers_are_secrets_whatever_their_sign_and_zeros() {
    let redactor = Redactor::new(["-12345", "1234.50", "98765432109876543210"]);
    for number in [data!(-12345), data!(12345), data!(1234.5), data!(-1234.5)] {
        assert_eq!(redactor.data(number.clone()), data!("***"), "{number}");
    }
    for number in [data!(1234), data!(123456), data!(0.5)] {
        assert_eq!(redactor.data(number.clone()), number);
    }
}

/// For any text before and after the secret in the encoded text.
#[test]
fn base64_is_cut_out_at_any_alignment() {
    let form = percent(SECRET, true).replace("%20", "+");
    for inner in [SECRET.to_owned(), form, percent(SECRET, true), json(SECRET)] {
        for before in ["", "u", "us", "user:", "client_id:"] {
            for after in ["", "1", "12", "123"] {
                let whole = format!("{before}{inner}{after}");
                for encoded in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                    for shown in [
                        encoded.clone(),
                        percent(&encoded, true),
                        encoded.replace('/', "\\/"),
                    ] {
                        let text = format!("Basic {shown} is wrong");
                        assert_eq!(cut(&text), "Basic *** is wrong", "{whole}: {shown}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        "",
        "pa\"ss & wör%d/+😀\\",
        "PA\"SS & wör%d/+😀\\z",
        "100 % \\ & &# &#; %2 \\u12",
    ] {
        assert_eq!(cut(text), text);
        assert!(matches!(
            Redactor::new([SECRET]).text(text),
            Cow::Borrowed(_)
        ));
    }
    assert_eq!(Redactor::new(["abc", ""]).text("abc"), "abc", "too short");
}

#[test]
fn secrets_that_overlap_are_cut_out_wholly() {
    let redactor = Redactor::new(["abcdef", "defghi", "token", "token-longer"]);
    assert_eq!(redactor.text("1abcdefghi2"), "1***2");
    assert_eq!(redactor.text("token-longer token"), "*** ***");
}

#[test]
fn data_is_searched_to_its_ends() {
    let secrets = data!({"key": "s3cret", "number": 123456, "more": {"a": ["inner"]}});
    let redactor = Redactor::of(&secrets);
    let found =
        data!({"a": ["x s3cret", 123456, 1234567, null], "s3cret": true, "b": {"c": "inner"}});
    let clean = data!({"a": ["x ***", "***", 1234567, null], "***": true, "b": {"c": "***"}});
    assert_eq!(redactor.data(found), clean);
    let other = data!({"a": [1, "text"], "b": null});
    assert_eq!(redactor.data(other.clone()), other);
}

#[test]
fn all_of_an_error_is_searched() {
    let mut error = WorkflowError::new("N-s3cret", "of s3cret");
    error.code = Some("c-s3cret".to_owned());
    let redactor = Redactor::new(["s3cret"]);
    redactor.message(&mut error);
    assert_eq!(
        (error.name.as_str(), error.code.as_deref()),
        ("N-s3cret", Some("c-s3cret"))
    );
    assert_eq!(error.message, "of ***");
    redactor.error(&mut error);
    assert_eq!(
        (error.name.as_str(), error.code.as_deref()),
        ("N-***", Some("c-***"))
    );
}

/// A service's answer must not hold up a worker, whatever it contains.
#[test]
fn texts_full_of_beginnings_take_linear_time() {
    let redactor = Redactor::new(["se\\cret=\"7\" €", "\\\\x&y", "another one"]);
    let core = "YW5vdGhlciBvbmU";
    for part in [
        "\\", "&#", "\\u{", "&amp;", "%25", "\\u", "a", core, "€", "\n", "ab:", "YW\n",
    ] {
        let text = part.repeat((1 << 16) / part.len());
        let begin = std::time::Instant::now();
        let cut = redactor.text(&text);
        let took = begin.elapsed();
        assert_eq!(cut.contains("***"), part == core, "{part}");
        // A quarter of a second of processor time if unoptimised; a quadratic search would take many minutes.
        assert!(took.as_secs() < 120, "{part}: {took:?}");
    }
}

#[test]
fn a_secret_behind_many_backslashes_is_cut_out() {
    let redactor = Redactor::new(["\"secret\""]);
    for count in [1, 3, 64, 200] {
        let slashes = "\\".repeat(count);
        let text = format!("{slashes}\"secret{slashes}\"");
        let cut = redactor.text(&text);
        assert!(!cut.contains("secret"), "{count}: {cut}");
    }
}
