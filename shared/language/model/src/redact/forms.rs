//! The forms in which a value may occur.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::pattern::Pattern;

pub fn patterns(value: &str) -> Vec<Pattern> {
    let mut patterns = vec![
        Pattern::escaped(value),
        Pattern::digits(&hexadecimal(value)),
    ];
    let mut cores: Vec<String> = Vec::new();
    for bytes in encoded(value) {
        for shift in 0..3 {
            let core = base64_core(&bytes, shift);
            // As in file names and tokens (RFC 4648, section 5).
            let other = core.replace('+', "-").replace('/', "_");
            for core in [core, other] {
                if core.len() >= CORE_MIN && !cores.contains(&core) {
                    cores.push(core);
                }
            }
        }
    }
    patterns.extend(cores.iter().map(|core| Pattern::base64(core)));
    patterns
}

/// Shorter pieces of Base64 occur by chance: one of four characters in every twelfth image of a megabyte, and cutting
/// it out would destroy the image.
const CORE_MIN: usize = 6;

/// The texts that are put into Base64: the value itself, or its form in form data (RFC 6749, section 2.3.1), a URL or a
/// JSON string.
fn encoded(value: &str) -> Vec<Vec<u8>> {
    let json = serde_json::Value::from(value).to_string();
    let mut all = vec![value.as_bytes().to_vec()];
    for form in [
        percent(value, "-._*", Some('+')),
        percent(value, "-._~", None),
        percent(value, "-._~!*'()", None),
        json[1..json.len() - 1].to_owned(),
    ] {
        if !all.contains(&form.as_bytes().to_vec()) {
            all.push(form.into_bytes());
        }
    }
    all
}

/// Percent encoding of all but letters, digits and `kept`.
fn percent(value: &str, kept: &str, space: Option<char>) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        let char = char::from(byte);
        match space {
            _ if char.is_ascii_alphanumeric() || kept.contains(char) => text.push(char),
            Some(space) if char == ' ' => text.push(space),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The part of the Base64 of any text with `bytes` in it that depends on `bytes` alone, where `shift` more bytes than a
/// multiple of three come before them.
fn base64_core(bytes: &[u8], shift: usize) -> String {
    let mut padded = vec![0; shift];
    padded.extend_from_slice(bytes);
    let first = (shift * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    let text = STANDARD_NO_PAD.encode(&padded);
    text.get(first..end).unwrap_or_default().to_owned()
}

fn hexadecimal(value: &str) -> String {
    value.bytes().map(|byte| format!("{byte:02x}")).collect()
}
