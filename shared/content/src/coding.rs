//! Content codings: gzip, deflate and brotli (RFC 9110, section 8.4.1).
//!
//! Libraries of HTTP clients know the codings only in lower case, ignore all others, and stop after the first member of
//! a gzip body. So a part of a body would count as the whole.

use std::io::Read;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use encoding_rs::Encoding;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// The value of `Accept-Encoding`.
pub const ACCEPTED: &str = "gzip, deflate, br";

/// The maximum number of codings of one body.
const CODINGS_MAX: usize = 4;

const CHUNK_BYTES: usize = 64 << 10;

/// The reason why a body cannot be decompressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    #[error("the body is compressed with `{0}`; only gzip, deflate and br can be read")]
    Unknown(String),
    #[error("the body has more than {CODINGS_MAX} content codings")]
    TooMany,
    #[error("the body isn't valid {coding}: {reason}")]
    Invalid {
        coding: &'static str,
        reason: String,
    },
    /// More than the limit of bytes after decompression.
    #[error("the decompressed body is larger than {0} bytes")]
    TooLarge(usize),
}

#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

/// Undoes the codings that `Content-Encoding` lists. A header that occurs several times is one list.
///
/// # Errors
/// [`CodingError`]. Never a part of the body.
pub fn decode<'a>(
    content_encoding: impl IntoIterator<Item = &'a str>,
    body: Vec<u8>,
    bytes_max: usize,
) -> Result<Vec<u8>, CodingError> {
    // Nothing was compressed, as in an answer to HEAD.
    if body.is_empty() {
        return Ok(body);
    }
    let mut codings = Vec::new();
    let listed = content_encoding
        .into_iter()
        .flat_map(|list| list.split(','));
    for name in listed.map(str::trim).filter(|name| !name.is_empty()) {
        codings.extend(coding(name)?);
    }
    if codings.len() > CODINGS_MAX {
        return Err(CodingError::TooMany);
    }
    // They are listed in the order in which they were applied.
    codings
        .iter()
        .rev()
        .try_fold(body, |body, coding| undo(*coding, &body, bytes_max))
}

/// `None` if nothing was compressed. Some services name the character set here.
fn coding(name: &str) -> Result<Option<Coding>, CodingError> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => Some(Coding::Gzip),
        "deflate" => Some(Coding::Deflate),
        "br" => Some(Coding::Brotli),
        "identity" | "none" => None,
        other if Encoding::for_label(other.as_bytes()).is_some() => None,
        _ => return Err(CodingError::Unknown(name.chars().take(40).collect())),
    })
}

fn undo(coding: Coding, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, CodingError> {
    match coding {
        Coding::Gzip => inflate("gzip", MultiGzDecoder::new(body), bytes_max, |gzip| {
            gzip.get_ref().len()
        }),
        Coding::Brotli => unbrotli(body, bytes_max),
        // The standard means the zlib format, and some servers send the data without its header.
        Coding::Deflate => {
            let zlib = inflate("deflate", ZlibDecoder::new(body), bytes_max, |zlib| {
                zlib.get_ref().len()
            });
            match zlib {
                Err(CodingError::Invalid { .. }) => {
                    let raw = DeflateDecoder::new(body);
                    match inflate("deflate", raw, bytes_max, |raw| raw.get_ref().len()) {
                        Err(CodingError::Invalid { .. }) => zlib,
                        raw => raw,
                    }
                }
                zlib => zlib,
            }
        }
    }
}

/// `left`: the number of bytes that the decoder has not read.
fn inflate<D: Read>(
    coding: &'static str,
    mut decoder: D,
    bytes_max: usize,
    left: impl FnOnce(&D) -> usize,
) -> Result<Vec<u8>, CodingError> {
    let mut decoded = Vec::new();
    let read = (&mut decoder)
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut decoded);
    read.map_err(|error| invalid(coding, &error.to_string()))?;
    if decoded.len() > bytes_max {
        return Err(CodingError::TooLarge(bytes_max));
    }
    ended(coding, left(&decoder))?;
    Ok(decoded)
}

fn unbrotli(body: &[u8], bytes_max: usize) -> Result<Vec<u8>, CodingError> {
    const CODING: &str = "br";
    let mut state = BrotliState::new(
        StandardAlloc::default(),
        StandardAlloc::default(),
        StandardAlloc::default(),
    );
    // Such a window takes up to a gigabyte, and isn't part of the content coding.
    state.large_window = false;
    let (mut left, mut read, mut written) = (body.len(), 0, 0);
    let (mut decoded, mut chunk) = (Vec::new(), vec![0; CHUNK_BYTES]);
    loop {
        let (mut room, mut filled) = (chunk.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            body,
            &mut room,
            &mut filled,
            &mut chunk,
            &mut written,
            &mut state,
        );
        if decoded.len() + filled > bytes_max {
            return Err(CodingError::TooLarge(bytes_max));
        }
        decoded.extend_from_slice(&chunk[..filled]);
        match result {
            BrotliResult::ResultSuccess => break,
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return Err(invalid(CODING, "it ends too early")),
            BrotliResult::ResultFailure => return Err(invalid(CODING, "it is damaged")),
        }
    }
    ended(CODING, left)?;
    Ok(decoded)
}

fn ended(coding: &'static str, left: usize) -> Result<(), CodingError> {
    match left {
        0 => Ok(()),
        left => Err(invalid(coding, &format!("{left} bytes follow its end"))),
    }
}

fn invalid(coding: &'static str, reason: &str) -> CodingError {
    CodingError::Invalid {
        coding,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn raw(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// `{"z": 1}`, uncompressed within a brotli stream.
    const BROTLI: &[u8] = b"\x8b\x03\x80{\"z\": 1}\x03";

    fn decoded(header: &str, body: &[u8]) -> Result<String, String> {
        let decoded = decode([header], body.to_vec(), LIMIT);
        let decoded = decoded.map_err(|error| error.to_string())?;
        Ok(String::from_utf8(decoded).unwrap())
    }

    #[test]
    fn codings_have_any_case_and_may_be_a_list() {
        let json = br#"{"z": 1}"#;
        for (header, body) in [
            ("", json.to_vec()),
            ("identity", json.to_vec()),
            ("UTF-8", json.to_vec()),
            ("GZIP", gzip(json)),
            ("x-gzip", gzip(json)),
            ("deflate", zlib(json)),
            ("Deflate", raw(json)),
            ("br", BROTLI.to_vec()),
            ("gzip, gzip", gzip(&gzip(json))),
            ("deflate,gzip", gzip(&zlib(json))),
            ("gzip , identity,", gzip(json)),
        ] {
            assert_eq!(
                decoded(header, &body).as_deref(),
                Ok(r#"{"z": 1}"#),
                "{header}"
            );
        }
        let twice = decode(["gzip", "gzip"], gzip(&gzip(json)), LIMIT);
        assert_eq!(twice.as_deref(), Ok(&json[..]));
    }

    #[test]
    fn all_members_of_a_gzip_body_count() {
        let members = [gzip(b"line 1\n"), gzip(b""), gzip(b"line 2\n")].concat();
        assert_eq!(decoded("gzip", &members).as_deref(), Ok("line 1\nline 2\n"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_as_a_whole() {
        let json = br#"{"z": 1}"#;
        let cut = |body: Vec<u8>| body[..body.len() - 2].to_vec();
        let behind = |body: Vec<u8>| [&body[..], b"..."].concat();
        for (header, body, expected) in [
            ("zstd", json.to_vec(), "compressed with `zstd`"),
            ("gzip,gzip,gzip,gzip,gzip", json.to_vec(), "more than 4"),
            ("gzip", json.to_vec(), "isn't valid gzip"),
            ("gzip", cut(gzip(json)), "isn't valid gzip"),
            ("gzip", behind(gzip(json)), "isn't valid gzip"),
            ("deflate", json.to_vec(), "isn't valid deflate"),
            ("deflate", cut(zlib(json)), "isn't valid deflate"),
            ("deflate", behind(zlib(json)), "3 bytes follow its end"),
            ("br", cut(BROTLI.to_vec()), "it ends too early"),
            ("br", behind(BROTLI.to_vec()), "3 bytes follow its end"),
            ("br", json.to_vec(), "isn't valid br"),
        ] {
            let error = decoded(header, &body).unwrap_err();
            assert!(error.contains(expected), "{header}: {error}");
        }
    }

    #[test]
    fn the_limit_is_that_of_the_decompressed_body() {
        let zeros = vec![0; LIMIT + 1];
        for (header, body) in [
            ("gzip", gzip(&zeros)),
            ("deflate", zlib(&zeros)),
            ("deflate", raw(&zeros)),
            ("gzip, gzip", gzip(&gzip(&zeros))),
        ] {
            let error = decode([header], body, LIMIT).unwrap_err();
            assert_eq!(error, CodingError::TooLarge(LIMIT), "{header}");
        }
        let fits = decode(["gzip"], gzip(&zeros[1..]), LIMIT).unwrap();
        assert_eq!(fits.len(), LIMIT);
    }
}
