//! The claims of a token about its holder.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use swirl_access::Role;

const NAME_CHARS_MAX: usize = 100;

/// The subject of the token, shortened for messages.
pub(super) fn subject(claims: &Map<String, Value>) -> String {
    let name = claims.get("sub").and_then(Value::as_str).unwrap_or("?");
    let plain = name.chars().filter(|c| !c.is_control());
    plain.take(NAME_CHARS_MAX).collect()
}

/// Swirl's roles; other values of the claim are ignored.
pub(super) fn roles(
    claims: &Map<String, Value>,
    path: &str,
    mapped: &BTreeMap<String, Role>,
) -> Vec<Role> {
    let mut roles: Vec<Role> = words(claims, path)
        .iter()
        .filter_map(|word| match mapped.is_empty() {
            true => word.parse().ok(),
            false => mapped.get(word).copied(),
        })
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// Returns the words of a claim: an array of strings, or one string with words separated by spaces, as in `scope`.
pub(super) fn words(claims: &Map<String, Value>, path: &str) -> Vec<String> {
    match find(claims, path) {
        Some(Value::String(text)) => {
            let whole = std::iter::once(text.as_str());
            let parts = text.split_whitespace().filter(|part| part != text);
            whole.chain(parts).map(str::to_owned).collect()
        }
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

/// Finds a claim by its name, which may be a URL and so contain dots; otherwise by its path.
fn find<'c>(claims: &'c Map<String, Value>, path: &str) -> Option<&'c Value> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    let mut names = path.split('.');
    let mut found = claims.get(names.next()?)?;
    for name in names {
        found = found.get(name)?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims() -> Map<String, Value> {
        let claims = json!({
            "sub": "ada\n",
            "roles": ["viewer", "admin", "viewer", "cook", 7],
            "realm_access": {"roles": ["SRE Team"]},
            "https://swirl.example/roles": "operator",
            "scope": "openid viewer deployer",
        });
        claims.as_object().unwrap().clone()
    }

    #[test]
    fn roles_are_found_and_mapped() {
        let claims = claims();
        let none = BTreeMap::new();
        let found = |path: &str| roles(&claims, path, &none);
        assert_eq!(found("roles"), [Role::Viewer, Role::Admin]);
        assert_eq!(found("https://swirl.example/roles"), [Role::Operator]);
        assert_eq!(found("scope"), [Role::Viewer, Role::Deployer]);
        for nothing in ["groups", "realm_access", "roles.0", "sub", ""] {
            assert_eq!(found(nothing), [], "{nothing}");
        }
        let mapped = BTreeMap::from([("SRE Team".to_owned(), Role::Operator)]);
        let path = "realm_access.roles";
        assert_eq!(roles(&claims, path, &mapped), [Role::Operator]);
        // With a mapping, only the names in it count.
        assert_eq!(roles(&claims, "roles", &mapped), []);
        assert_eq!(subject(&claims), "ada");
        assert_eq!(subject(&Map::new()), "?");
    }
}
