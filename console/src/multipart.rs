//! Forms with files (`multipart/form-data`, RFC 7578), as browsers write them.

/// One field of a form.
#[derive(Debug, PartialEq)]
pub struct Part {
    pub name: String,
    /// The name of its file, if it is one; empty for a field in which no file was chosen.
    pub file: Option<String>,
    pub content: Vec<u8>,
}

/// The text between the parts, if this is the type of a form with files.
pub fn boundary(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').map(str::trim);
    let kind = parameters.next()?;
    if !kind.eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let found = parameters.find_map(|parameter| parameter.strip_prefix("boundary="))?;
    let boundary = found.trim_matches('"');
    // RFC 2046.
    (1..=70).contains(&boundary.len()).then_some(boundary)
}

/// The beginning of a form whose first field is this one, up to what follows it.
pub fn beginning(boundary: &str, name: &str, value: &str) -> String {
    format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}")
}

/// The fields of a whole form; `None` if it isn't one, or ends too early.
pub fn parts(form: &[u8], boundary: &str) -> Option<Vec<Part>> {
    let mark = format!("--{boundary}");
    let between = format!("\r\n{mark}");
    let mut rest = form.strip_prefix(mark.as_bytes())?;
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let end = find(rest, between.as_bytes())?;
        parts.push(part(&rest[..end])?);
        rest = &rest[end + between.len()..];
    }
}

fn part(text: &[u8]) -> Option<Part> {
    let end = find(text, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&text[..end]).into_owned();
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.trim().eq_ignore_ascii_case("content-disposition");
        is_it.then_some(value)
    })?;
    Some(Part {
        name: parameter(disposition, "name")?,
        file: parameter(disposition, "filename"),
        content: text[end + 4..].to_vec(),
    })
}

/// A quoted parameter. Browsers encode quotes and line breaks in it.
fn parameter(disposition: &str, name: &str) -> Option<String> {
    let (_, rest) = disposition.split_once(&format!("; {name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain = value.replace("%22", "\"");
    Some(plain.replace("%0D", "\r").replace("%0A", "\n"))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_is_that_of_the_header() {
        let of = |header| boundary(header);
        assert_eq!(of("multipart/form-data; boundary=----a1"), Some("----a1"));
        assert_eq!(of("Multipart/Form-Data;boundary=\"x\""), Some("x"));
        for other in [
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/mixed; boundary=x",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn fields_and_files_are_read() {
        let form = "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\na1\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a/b%22.yaml\"\r\n\
                    Content-Type: application/yaml\r\n\r\nid: a\r\n--y\r\n\r\n--x--\r\n";
        let found = parts(form.as_bytes(), "x").unwrap();
        assert!(form.starts_with(&beginning("x", "csrf", "a1")));
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].name, &found[0].file), ("csrf", &None));
        assert_eq!(found[0].content, b"a1");
        assert_eq!(found[1].name, "file");
        assert_eq!(found[1].file.as_deref(), Some("a/b\".yaml"));
        assert_eq!(found[1].content, b"id: a\r\n--y\r\n");
        // One that was cut off, and others that are none.
        for end in [form.len() - 4, 30, 3, 0] {
            assert_eq!(parts(&form.as_bytes()[..end], "x"), None, "{end}");
        }
        assert_eq!(parts(form.as_bytes(), "z"), None);
    }
}
