//! A proto file and the files that it imports.
//!
//! Imports are relative to the folder of the file that a function names. If the folder's path ends with the file's
//! package, as is usual when files are organised by package, imports are relative to the folder above the package
//! instead. So `protos/acme/v1/users.proto` with the package `acme.v1` finds `acme/v1/types.proto` in its own folder.
//! Files outside of that folder are never requested.

use std::collections::{BTreeMap, VecDeque};

use protox::file::File;

use super::google::is_known;

/// The largest proto file, in bytes.
const PROTO_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of files that one may import, directly or indirectly.
const IMPORTS_MAX: usize = 200;

/// The maximum nesting depth of braces in a file, because its parser is recursive.
const NESTING_MAX: usize = 100;

/// Texts by the names under which files import each other.
#[derive(Debug)]
pub(super) struct Sources {
    /// The name of the file that the function refers to.
    pub(super) name: String,
    pub(super) files: BTreeMap<String, String>,
    /// The URIs of imports that `get` doesn't have.
    pub(super) missing: Vec<String>,
}

impl Sources {
    /// Reads a file, and the files that it imports as far as `get` has them by URI.
    ///
    /// # Errors
    /// A file is too large, or imports too many files. Other errors in a file are reported when it is compiled.
    pub(super) fn read<'a>(
        uri: &str,
        text: &'a str,
        get: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Sources, String> {
        let path = uri.split(['?', '#']).next().unwrap_or(uri);
        let (base, name) = base(path, &package(text)?);
        let mut sources = Sources {
            name: name.to_owned(),
            files: BTreeMap::new(),
            missing: Vec::new(),
        };
        let mut open = VecDeque::from([(name.to_owned(), text)]);
        while let Some((name, text)) = open.pop_front() {
            let imports = imports(&name, text).map_err(|error| format!("{name}: {error}"))?;
            sources.files.insert(name, text.to_owned());
            for import in imports {
                let uri = format!("{base}{import}");
                let is_there = sources.files.contains_key(&import)
                    || sources.missing.contains(&uri)
                    || open.iter().any(|(name, _)| *name == import);
                if is_there || is_known(&import) || !is_below(&import) {
                    continue;
                }
                if sources.files.len() + sources.missing.len() + open.len() > IMPORTS_MAX {
                    return Err(format!("it imports more than {IMPORTS_MAX} files"));
                }
                match get(&uri) {
                    Some(text) => open.push_back((import, text)),
                    None => sources.missing.push(uri),
                }
            }
        }
        Ok(sources)
    }
}

/// The folder to which imports are relative, and a file's own path from there.
fn base<'a>(path: &'a str, package: &str) -> (&'a str, &'a str) {
    let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
    let own = format!("{}/", package.replace('.', "/"));
    let above = folder
        .strip_suffix(&own)
        .filter(|above| above.is_empty() || above.ends_with('/'));
    let base = above.filter(|_| !package.is_empty()).unwrap_or(folder);
    match &path[base.len()..] {
        "" => (base, "service.proto"),
        name => (base, name),
    }
}

/// Whether an import stays inside the folder to which it is relative.
fn is_below(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.split('/').all(is_plain) && !name.contains(['\\', ':', '?', '#', '%'])
}

fn package(text: &str) -> Result<String, String> {
    let file = parse("it", text)?;
    let package = file.and_then(|file| file.file_descriptor_proto().package.clone());
    Ok(package.unwrap_or_default())
}

fn imports(name: &str, text: &str) -> Result<Vec<String>, String> {
    let file = parse(name, text)?;
    Ok(file.map_or_else(Vec::new, |file| {
        file.file_descriptor_proto().dependency.clone()
    }))
}

/// Returns `None` if it isn't a valid proto file. The compiler reports that with the location.
fn parse(name: &str, text: &str) -> Result<Option<File>, String> {
    if text.len() > PROTO_BYTES_MAX {
        return Err(format!(
            "it has {} bytes; at most {PROTO_BYTES_MAX} are read",
            text.len()
        ));
    }
    if nesting(text) > NESTING_MAX {
        return Err(format!(
            "its braces are nested more than {NESTING_MAX} deep"
        ));
    }
    Ok(File::from_source(name, text).ok())
}

/// The nesting depth of braces and angle brackets outside of strings and comments.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'<' | b'[' => depth += 1,
            b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            b'"' | b'\'' => skip_string(&mut bytes, byte),
            b'/' if bytes.peek() == Some(&b'/') => {
                bytes.by_ref().find(|byte| *byte == b'\n');
            }
            b'/' if bytes.peek() == Some(&b'*') => skip_comment(&mut bytes),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn skip_string(bytes: &mut impl Iterator<Item = u8>, quote: u8) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            // A string ends at the end of its line at the latest. That is an error that the compiler reports.
            b'\n' => return,
            byte if byte == quote => return,
            _ => {}
        }
    }
}

fn skip_comment(bytes: &mut impl Iterator<Item = u8>) {
    bytes.next();
    let mut last = 0;
    for byte in bytes {
        if last == b'*' && byte == b'/' {
            return;
        }
        last = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        uri: &str,
        files: &[(&str, &str)],
    ) -> Result<(String, Vec<String>, Vec<String>), String> {
        let get = |wanted: &str| {
            let found = files.iter().find(|(uri, _)| *uri == wanted);
            found.map(|(_, text)| *text)
        };
        let sources = Sources::read(uri, get(uri).unwrap(), get)?;
        Ok((
            sources.name,
            sources.files.into_keys().collect(),
            sources.missing,
        ))
    }

    #[test]
    fn imports_are_relative_to_the_folder_or_the_package_root() {
        let a = "syntax = \"proto3\"; package acme.v1; import \"acme/v1/b.proto\"; import \"google/protobuf/any.proto\";";
        let b = "syntax = \"proto3\"; package acme.v1; import \"acme/v1/a.proto\"; import \"acme/c.proto\";";
        let c = "syntax = \"proto3\"; package acme;";
        for root in ["", "file://", "protos/", "http://h/protos/"] {
            let uri = |name: &str| format!("{root}{name}");
            let (a_uri, b_uri, c_uri) = (
                uri("acme/v1/a.proto"),
                uri("acme/v1/b.proto"),
                uri("acme/c.proto"),
            );
            let files = [
                (a_uri.as_str(), a),
                (b_uri.as_str(), b),
                (c_uri.as_str(), c),
            ];
            let names = ["acme/c.proto", "acme/v1/a.proto", "acme/v1/b.proto"].map(str::to_owned);
            let own = "acme/v1/a.proto".to_owned();
            assert_eq!(
                read(&a_uri, &files),
                Ok((own.clone(), names.to_vec(), vec![]))
            );
            // Step by step, in the order in which they are fetched.
            let found = read(&a_uri, &files[..1]).unwrap();
            assert_eq!(found, (own.clone(), vec![own.clone()], vec![b_uri.clone()]));
            assert_eq!(read(&a_uri, &files[..2]).unwrap().2, [c_uri.as_str()]);
        }
        let flat = "syntax = \"proto3\"; package acme.v1; import \"common/b.proto\";";
        let found = read(
            "http://h/p/a.proto?v=1",
            &[("http://h/p/a.proto?v=1", flat)],
        )
        .unwrap();
        assert_eq!(found.2, ["http://h/p/common/b.proto"]);
    }

    #[test]
    fn files_outside_are_never_requested() {
        for import in [
            "../b.proto",
            "/etc/passwd",
            "a/../../b.proto",
            "http://h/b.proto",
            "a\\\\b",
            "%2e%2e/b",
        ] {
            let text = format!("syntax = \"proto3\"; import \"{import}\";");
            let found = read("a.proto", &[("a.proto", &text)]).unwrap();
            assert_eq!(found.2, [""; 0], "{import}");
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let refused = |text: &str| read("a.proto", &[("a.proto", text)]).unwrap_err();
        assert!(refused(&"x".repeat(PROTO_BYTES_MAX + 1)).contains("at most"));
        assert!(refused(&"option (x) = { a ".repeat(200)).contains("nested more than 100"));
        let many: String = (0..300).map(|n| format!("import \"{n}.proto\";")).collect();
        assert!(refused(&format!("syntax = \"proto3\";{many}")).contains("more than 200 files"));
        assert_eq!(nesting("a { \"{{{\" '{\\'{' // {{{\n /* {{{ **/ { } }"), 2);
        assert_eq!(nesting("\"{\n{"), 1);
    }
}
