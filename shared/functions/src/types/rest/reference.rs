//! References from one document to another.

use swirl_spec::resource::scheme;
use url::Url;

pub(crate) fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

pub(crate) fn is_http(uri: &str) -> bool {
    scheme(uri).is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// The URI of `reference` inside the document at `base`. Both are URLs, or file names as definitions write them.
///
/// # Errors
/// A document on the web refers to something outside of the web.
pub(crate) fn join(base: &str, reference: &str) -> Result<String, String> {
    if is_http(base) {
        let joined = Url::parse(base).and_then(|base| base.join(reference));
        let joined = joined
            .map_err(|error| format!("the reference `{reference}` is not a valid URL: {error}"))?
            .to_string();
        return match is_http(&joined) {
            true => Ok(joined),
            false => Err(format!(
                "the reference `{reference}` isn't followed: a document on the web can refer to \
                 others on the web only"
            )),
        };
    }
    if scheme(reference).is_some() {
        return Ok(reference.to_owned());
    }
    let path = match scheme(base) {
        None => base,
        Some(scheme) => {
            let rest = &base[scheme.len() + 1..];
            rest.strip_prefix("//").unwrap_or(rest)
        }
    };
    let prefix = &base[..base.len() - path.len()];
    let folder = path.rfind('/').map_or("", |slash| &path[..slash + 1]);
    let joined = match reference.starts_with('/') {
        true => reference.to_owned(),
        false => format!("{folder}{reference}"),
    };
    Ok(format!("{prefix}{}", normal(&joined)))
}

/// Removes `.` from the path, and `..` as far as there is a folder before it.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_relative_to_their_document() {
        for (base, reference, expected) in [
            ("https://h/a/b.yaml?v=1", "c.yaml", "https://h/a/c.yaml"),
            ("https://h/a/b.yaml", "../c.yaml", "https://h/c.yaml"),
            ("https://h/a/b.yaml", "//g/c.yaml", "https://g/c.yaml"),
            ("openapi.yaml", "./paths/pet.yaml", "paths/pet.yaml"),
            (
                "specs/paths/pet.yaml",
                "../common.yaml",
                "specs/common.yaml",
            ),
            ("specs/a.yaml", "../../x.yaml", "../x.yaml"),
            ("file://specs/a.yaml", "b.yaml", "file://specs/b.yaml"),
            ("file:///specs/a.yaml", "b.yaml", "file:///specs/b.yaml"),
            ("classpath:a.yaml", "b.yaml", "classpath:b.yaml"),
            ("a.yaml", "https://h/b.yaml", "https://h/b.yaml"),
            ("a.yaml", "/etc/b.yaml", "/etc/b.yaml"),
        ] {
            let joined = join(base, reference);
            assert_eq!(joined.as_deref(), Ok(expected), "{base} {reference}");
        }
        for reference in ["file:///etc/passwd", "classpath:a.yaml", "ftp://h/a"] {
            let error = join("http://h/a.yaml", reference).unwrap_err();
            assert!(error.contains("on the web only"), "{error}");
        }
    }
}
