//! The address of a service: from `servers` in OpenAPI 3, from `schemes`, `host` and `basePath` in Swagger 2.0.

use serde_json::Value;
use url::Url;

use super::document::{FoundOperation, OpenApi};
use super::error::Error;
use super::node::Node;

/// The first server of the operation, else of its path, else of the document, else the given one, else `/`. A relative
/// URL is resolved against the document's own URL, or else against the given one. A server without a usable address
/// counts as none.
pub(crate) fn openapi3(document: &OpenApi, found: &FoundOperation<'_>) -> Result<String, Error> {
    or_given(openapi3_stated(document, found), found.server.as_ref())
}

fn or_given(stated: Result<String, Error>, given: Option<&Url>) -> Result<String, Error> {
    match (stated, given) {
        (Err(Error::Invalid { .. }), Some(given)) => {
            Ok(given.as_str().trim_end_matches('/').to_owned())
        }
        (Err(Error::Invalid { at, message }), None) => {
            Err(Error::NoAddress(format!("{at}: {message}")))
        }
        (stated, _) => stated,
    }
}

fn openapi3_stated(document: &OpenApi, found: &FoundOperation<'_>) -> Result<String, Error> {
    let root = document.root();
    let first = [&found.operation, &found.item, &root]
        .into_iter()
        .find_map(|level| level.get("servers")?.items().into_iter().next());
    let Some(server) = first else {
        return match &found.server {
            Some(given) => Ok(given.as_str().trim_end_matches('/').to_owned()),
            None => absolute(document, "/", &root.at, None),
        };
    };
    let template = server
        .text("url")
        .ok_or_else(|| Error::invalid(&server.at, "a server needs a `url` that is a string"))?;
    absolute(
        document,
        &fill(template, &server)?,
        &server.at,
        found.server.as_ref(),
    )
}

/// The scheme of the document's own URI if it is listed or no scheme is listed, otherwise `https` before `http`.
pub(crate) fn swagger2(document: &OpenApi, found: &FoundOperation<'_>) -> Result<String, Error> {
    or_given(swagger2_stated(document, found), found.server.as_ref())
}

fn swagger2_stated(document: &OpenApi, found: &FoundOperation<'_>) -> Result<String, Error> {
    let root = document.root();
    let own = document
        .uri()
        .map(Url::scheme)
        .filter(|scheme| matches!(*scheme, "http" | "https"));
    let listed: Vec<_> = [&found.operation, &root]
        .into_iter()
        .find_map(|level| level.get("schemes"))
        .map(|schemes| {
            schemes
                .items()
                .into_iter()
                .filter_map(|s| s.value.as_str())
                .collect()
        })
        .unwrap_or_default();
    let scheme = match own {
        Some(own) if listed.is_empty() || listed.contains(&own) => own,
        _ if listed.contains(&"https") || listed.is_empty() => "https",
        _ if listed.contains(&"http") => "http",
        _ => {
            let message = format!(
                "none of the schemes ({}) is `http` or `https`",
                listed.join(", ")
            );
            return Err(Error::invalid(&root.at, message));
        }
    };
    let base = root.text("basePath").unwrap_or_default();
    let base = base.trim_start_matches('/');
    match root.text("host") {
        Some(host) => {
            let url = format!("{scheme}://{host}/{base}");
            absolute(document, &url, "#/host", None)
        }
        None => match &found.server {
            Some(given) if base.is_empty() => Ok(given.as_str().trim_end_matches('/').to_owned()),
            given => absolute(document, &format!("/{base}"), "#/basePath", given.as_ref()),
        },
    }
}

/// Replaces the `{variables}` of a server with their defaults.
fn fill(template: &str, server: &Node<'_>) -> Result<String, Error> {
    let mut url = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Error::invalid(&server.at, "a `{` of the server's URL isn't closed"))?;
        let value = server
            .get("variables")
            .and_then(|all| all.get(name)?.get("default"));
        let value = match value.map(|node| node.value) {
            Some(Value::String(text)) => text.clone(),
            Some(number @ Value::Number(_)) => number.to_string(),
            _ => {
                let message = format!("the server variable `{name}` has no default");
                return Err(Error::invalid(&server.at, message));
            }
        };
        url.push_str(before);
        url.push_str(&value);
        rest = after;
    }
    url.push_str(rest);
    Ok(url)
}

fn is_relative(server: &str) -> bool {
    Url::parse(server) == Err(url::ParseError::RelativeUrlWithoutBase)
}

fn absolute(
    document: &OpenApi,
    server: &str,
    at: &str,
    given: Option<&Url>,
) -> Result<String, Error> {
    let own = document
        .uri()
        .filter(|uri| matches!(uri.scheme(), "http" | "https"));
    let url = match (Url::parse(server), own.or(given).or(document.uri())) {
        (Ok(url), _) => Ok(url),
        (Err(url::ParseError::RelativeUrlWithoutBase), Some(uri)) => uri.join(server),
        (Err(error), _) => Err(error),
    };
    let url = match url {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => url,
        // Relative to a document that wasn't read from an address, such as a file.
        _ if is_relative(server) => {
            let reason = "the OpenAPI document names no server".to_owned();
            return Err(Error::NoAddress(reason));
        }
        Ok(_) => {
            let message =
                format!("the server URL `{server}` is not an http or https address with a host");
            return Err(Error::invalid(at, message));
        }
        Err(error) => {
            return Err(Error::invalid(
                at,
                format!("the server URL `{server}` is not valid: {error}"),
            ));
        }
    };
    if url.query().is_some() || url.fragment().is_some() {
        let message = format!("the server URL `{server}` must have no query and no fragment");
        return Err(Error::invalid(at, message));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use url::Url;

    use super::super::OpenApi;
    use super::Error;

    fn server(document: &Value, uri: &str) -> Result<String, String> {
        let document = OpenApi::parse(document.to_string().as_bytes(), uri).unwrap();
        document
            .operation("op")
            .map(|op| op.server)
            .map_err(|error| error.to_string())
    }

    const HTTP: &str = "https://example.org/api/v1/openapi.json";

    #[test]
    fn the_nearest_server_is_used_relative_to_the_document() {
        let (op, path, root) = ("https://op.example", "/path", "../root/");
        let document = |op: Option<&str>, path: Option<&str>, root: Option<&str>| {
            let servers = |url: Option<&str>| url.map_or(json!([]), |url| json!([{"url": url}]));
            let get = match op {
                Some(_) => json!({"operationId": "op", "servers": servers(op)}),
                None => json!({"operationId": "op"}),
            };
            let item = match path {
                Some(_) => json!({"servers": servers(path), "get": get}),
                None => json!({"get": get}),
            };
            json!({"openapi": "3.0.0", "servers": servers(root), "paths": {"/x": item}})
        };
        for (document, expected) in [
            (
                document(Some(op), Some(path), Some(root)),
                "https://op.example",
            ),
            (
                document(None, Some(path), Some(root)),
                "https://example.org/path",
            ),
            (
                document(None, None, Some(root)),
                "https://example.org/api/root",
            ),
            (document(None, None, None), "https://example.org"),
        ] {
            assert_eq!(server(&document, HTTP).unwrap(), expected);
        }
        let error = server(&document(None, None, None), "file:///a.json").unwrap_err();
        assert!(error.contains("names no server"), "{error}");
        let error = server(&document(None, None, Some("/v3")), "classpath:a.json").unwrap_err();
        assert!(error.contains("names no server"), "{error}");
    }

    #[test]
    fn variables_are_replaced_by_their_defaults() {
        let document = |variables: Value| {
            json!({"openapi": "3.1.0", "paths": {"/x": {"get": {"operationId": "op"}}},
                "servers": [{"url": "https://{region}.example.org:{port}/v1", "variables": variables}]})
        };
        let full = document(json!({"region": {"default": "eu"}, "port": {"default": 8443}}));
        assert_eq!(
            server(&full, HTTP).unwrap(),
            "https://eu.example.org:8443/v1"
        );
        let error = server(&document(json!({"region": {"default": "eu"}})), HTTP).unwrap_err();
        assert_eq!(
            error,
            "#/servers/0: the server variable `port` has no default"
        );
    }

    /// The operator's address takes the place of a server that cannot be called.
    #[test]
    fn a_server_without_a_usable_address_counts_as_none() {
        let given = Url::parse("http://given:1/base").unwrap();
        for url in [
            "localhost:8080",
            "{base}/v1",
            "https://{h}/x",
            "ftp://h",
            "https://h/?a=b",
        ] {
            let document = json!({"openapi": "3.0.0", "servers": [{"url": url}],
                "paths": {"/x": {"get": {"operationId": "op"}}}});
            let read = OpenApi::parse(document.to_string().as_bytes(), HTTP).unwrap();
            let found = read.operation_at("op", None);
            assert!(matches!(found, Err(Error::NoAddress(_))), "{url}");
            let operation = read.operation_at("op", Some(&given)).unwrap();
            assert_eq!(operation.server, "http://given:1/base", "{url}");
        }
    }

    #[test]
    fn swagger_2_servers_are_read() {
        let document = |extra: Value| {
            let mut document =
                json!({"swagger": "2.0", "paths": {"/x": {"get": {"operationId": "op"}}}});
            for (key, value) in extra.as_object().unwrap() {
                document[key] = value.clone();
            }
            document
        };
        let all = json!({"host": "a.example", "basePath": "/v2", "schemes": ["http", "https"]});
        for (extra, uri, expected) in [
            (
                all.clone(),
                "http://doc.example/s.json",
                "http://a.example/v2",
            ),
            (all, "file:///s.json", "https://a.example/v2"),
            (
                json!({"host": "a.example", "schemes": ["http"]}),
                HTTP,
                "http://a.example",
            ),
            (
                json!({}),
                "http://doc.example:81/s.json",
                "http://doc.example:81",
            ),
            (
                json!({"basePath": "/b"}),
                "http://doc.example/s.json",
                "http://doc.example/b",
            ),
        ] {
            assert_eq!(server(&document(extra), uri).unwrap(), expected);
        }
        let error = server(&document(json!({"host": "a", "schemes": ["ws"]})), HTTP).unwrap_err();
        assert!(error.contains("none of the schemes (ws)"), "{error}");
    }
}
