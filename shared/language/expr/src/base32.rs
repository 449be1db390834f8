//! Base32 (RFC 4648), for the formats `@base32` and `@base32d`.

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Five bytes are eight signs of five bits each.
const SIGNS: usize = 8;

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * SIGNS);
    for chunk in bytes.chunks(5) {
        let mut bits = 0u64;
        for at in 0..5 {
            bits = bits << 8 | u64::from(chunk.get(at).copied().unwrap_or_default());
        }
        let signs = (chunk.len() * 8).div_ceil(5);
        for at in 0..SIGNS {
            let index = bits >> (35 - 5 * at) & 31;
            out.push(match at < signs {
                true => char::from(ALPHABET[index as usize]),
                false => '=',
            });
        }
    }
    out
}

/// Returns nothing if the text has another sign. With or without padding, as Base64 is decoded.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let signs = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(signs.len() * 5 / SIGNS);
    let (mut bits, mut count) = (0u32, 0);
    for sign in signs {
        let value = ALPHABET.iter().position(|known| known == sign)?;
        bits = bits << 5 | value as u32;
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_4648() {
        for (plain, text) in [
            ("", ""),
            ("f", "MY======"),
            ("fo", "MZXQ===="),
            ("foo", "MZXW6==="),
            ("foob", "MZXW6YQ="),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI======"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()), "{text}");
            assert!(decode(text.trim_end_matches('=')).is_some());
        }
        assert_eq!(decode("a1"), None);
    }
}
