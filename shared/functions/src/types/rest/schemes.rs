//! The security requirements of an operation.

use super::document::{FoundOperation, OpenApi};
use super::error::Error;
use super::node::Node;
use super::operation::{Location, Scheme};

/// For OpenAPI 3.
pub(crate) fn openapi3(
    document: &OpenApi,
    found: &FoundOperation<'_>,
) -> Result<Vec<Vec<Scheme>>, Error> {
    let root = document.root();
    let schemes = root
        .get("components")
        .and_then(|all| all.get("securitySchemes"));
    requirements(document, found, schemes.as_ref(), &scheme)
}

/// The alternatives in the operation's `security`, or else in the document's.
pub(crate) fn requirements(
    document: &OpenApi,
    found: &FoundOperation<'_>,
    schemes: Option<&Node<'_>>,
    scheme: &dyn Fn(&Node<'_>) -> Result<Scheme, Error>,
) -> Result<Vec<Vec<Scheme>>, Error> {
    let root = document.root();
    let Some(list) = found
        .operation
        .get("security")
        .or_else(|| root.get("security"))
    else {
        return Ok(Vec::new());
    };
    let mut alternatives = Vec::new();
    for alternative in list.items() {
        let mut needed = Vec::new();
        for (name, at) in alternative.members() {
            let node = schemes
                .and_then(|schemes| schemes.get(name))
                .ok_or_else(|| {
                    Error::invalid(
                        &at.at,
                        format!("the security scheme `{name}` isn't defined"),
                    )
                })?;
            needed.push(scheme(&document.resolve(node)?)?);
        }
        alternatives.push(needed);
    }
    Ok(alternatives)
}

fn scheme(node: &Node<'_>) -> Result<Scheme, Error> {
    let kind = node.text("type").unwrap_or_default();
    Ok(match kind {
        "http" => match node
            .text("scheme")
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "basic" => Scheme::Basic,
            "bearer" => Scheme::Bearer {
                token_url: None,
                discovery_url: None,
            },
            other => Scheme::Other(format!("HTTP {other}")),
        },
        "apiKey" => api_key(node)?,
        "oauth2" => {
            let flows = node.get("flows");
            let token_url = ["clientCredentials", "password"]
                .iter()
                .find_map(|flow| Some(flows.as_ref()?.get(flow)?.text("tokenUrl")?.to_owned()));
            Scheme::Bearer {
                token_url,
                discovery_url: None,
            }
        }
        "openIdConnect" => {
            let discovery_url = node.text("openIdConnectUrl").map(str::to_owned);
            Scheme::Bearer {
                token_url: None,
                discovery_url,
            }
        }
        other => Scheme::Other(other.to_owned()),
    })
}

pub(crate) fn api_key(node: &Node<'_>) -> Result<Scheme, Error> {
    let name = node.text("name").unwrap_or_default().to_owned();
    match node.text("in").and_then(Location::parse) {
        Some(location) if location != Location::Path && !name.is_empty() => {
            Ok(Scheme::ApiKey { location, name })
        }
        _ => Err(Error::invalid(
            &node.at,
            "an API key needs a `name`, and `in` query, header or cookie",
        )),
    }
}
