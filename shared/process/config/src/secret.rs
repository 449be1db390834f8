//! Values that must not appear in logs.

use std::fmt;
use std::path::Path;

use swirl_documents::files;
use url::Url;

/// The largest file that contains one secret, in bytes.
const SECRET_BYTES_MAX: usize = 64 << 10;
/// The text that replaces a secret.
pub const MASK: &str = "***";

/// A password or a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// A URL that may contain a password. `Display` and `Debug` hide it.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    pub fn new(url: Url) -> Endpoint {
        Endpoint(url)
    }

    /// The URL including its password.
    pub fn expose(&self) -> &Url {
        &self.0
    }

    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A URL without its password. A user name without a password is hidden too, because NATS accepts tokens in this form.
fn masked(url: &Url) -> String {
    let mut shown = url.clone();
    if url.password().is_some() {
        let _ = shown.set_password(Some(MASK));
    } else if !url.username().is_empty() {
        let _ = shown.set_username(MASK);
    }
    shown.to_string()
}

/// The same for a text that may not be a URL. In that case, nothing before an `@` is shown.
pub fn mask_url(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() => masked(&url),
        _ => match text.rsplit_once('@') {
            Some((_, host)) => format!("{MASK}@{host}"),
            None => text.to_owned(),
        },
    }
}

/// The text of a file, without the line end that editors add.
pub fn read_secret(path: &Path) -> Result<Secret, String> {
    let bytes =
        files::read(path, SECRET_BYTES_MAX).map_err(|error| format!("cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "is not valid UTF-8".to_owned())?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match text.is_empty() {
        true => Err("is empty".to_owned()),
        false => Ok(Secret::new(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shown() {
        assert_eq!(format!("{:?}", Secret::new("s3cret")), "***");
        for (url, shown) in [
            ("redis://:s3cret@host:1/0", "redis://:***@host:1/0"),
            ("nats://s3cret@host:4222", "nats://***@host:4222"),
            ("redis://host:6379", "redis://host:6379"),
            ("redis://u:s3cret@[bad", "***@[bad"),
            ("u:s3cret@host", "***@host"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
        let endpoint = Endpoint::new(Url::parse("redis://u:s3cret@host").unwrap());
        assert_eq!(format!("{endpoint} {endpoint:?}").matches("***").count(), 2);
        assert_eq!(endpoint.expose().password(), Some("s3cret"));
    }
}
