//! The forms in which a secret may appear.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use url::form_urlencoded::byte_serialize;

/// Shorter pieces would be found by chance.
const PIECE: usize = 8;

/// The same text in many encodings, each with its name. Services answer with these, too.
pub fn encodings(text: &str) -> Vec<(&'static str, String)> {
    let json = json(text);
    let percent = percent_encode(text.as_bytes(), NON_ALPHANUMERIC).to_string();
    let form: String = byte_serialize(text.as_bytes()).collect();
    let html = text
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let units = text.encode_utf16().map(|unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    });
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        ("plain", text.to_owned()),
        ("json twice", self::json(&json)),
        ("json slashes", json.replace('/', "\\/")),
        ("json", json),
        ("json ascii", units.collect()),
        ("percent small", small_digits(&percent)),
        ("percent twice", percent.replace('%', "%25")),
        ("percent", percent),
        ("form", form),
        ("html", html),
        ("upper hex", hex.to_uppercase()),
        ("hex", hex),
        ("latin", text.bytes().map(char::from).collect()),
    ]
}

/// `%2F` as `%2f`.
fn small_digits(percent: &str) -> String {
    let mut parts = percent.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(2);
        format!("{text}%{}{rest}", digits.to_lowercase())
    })
}

fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Everything that must not be found for a secret, each with its name.
pub fn of(secret: &str) -> Vec<(&'static str, String)> {
    let mut needles = encodings(secret);
    // A piece is enough, because something may have cut the text before the secret was removed.
    let ends = [&secret[..PIECE], &secret[secret.len() - PIECE..]];
    needles.extend(ends.map(|end| ("a piece", end.to_owned())));
    for (name, inner) in encodings(secret) {
        if !["plain", "json", "percent", "form"].contains(&name) {
            continue;
        }
        for before in 0..3 {
            needles.push((
                "base64",
                core(&STANDARD_NO_PAD.encode(padded(before, &inner)), before),
            ));
            needles.push((
                "base64url",
                core(&URL_SAFE_NO_PAD.encode(padded(before, &inner)), before),
            ));
        }
    }
    needles
}

fn padded(before: usize, inner: &str) -> String {
    format!("{}{inner}", "\0".repeat(before))
}

/// Without the characters that depend on the text before and after.
fn core(encoded: &str, before: usize) -> String {
    let first = [0, 2, 3][before];
    encoded[first..encoded.len() - 2].to_owned()
}

/// Fails if a text contains a secret in any form.
#[track_caller]
pub fn assert_none(what: &str, text: &str, secrets: &[&str]) {
    for secret in secrets {
        for (name, needle) in of(secret) {
            if let Some(at) = text.find(&needle) {
                let from = text.floor_char_boundary(at.saturating_sub(200));
                let to = text.ceil_char_boundary(at + needle.len() + 100);
                panic!("{what}: {secret} as {name}: ...{}...", &text[from..to]);
            }
        }
    }
}
