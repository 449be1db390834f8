//! One static token, known by its hash.
//!
//! The hash is a fast one: it is safe because tokens are random, 256 bits each, and never chosen.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use swirl_model::time::Timestamp;

use crate::role::{Role, UnknownRole};

/// The prefix of a generated token, so that programs which look for leaked secrets can find it.
const PREFIX: &str = "swirl_";
const SCHEME: &str = "blake3:";
const RANDOM_BYTES: usize = 32;
const NAME_CHARS_MAX: usize = 100;

/// A token as a configuration has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The holder's name, for messages.
    pub name: String,
    /// `blake3:` and 64 hexadecimal digits.
    pub hash: String,
    pub roles: Vec<String>,
    /// All if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A token as it is checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub name: String,
    /// Compared in constant time.
    pub hash: blake3::Hash,
    pub roles: Vec<Role>,
    /// All if empty.
    pub namespaces: Vec<String>,
    pub expires: Option<Timestamp>,
}

/// A hash in a log is of no use to anybody, but it doesn't belong there either.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { name, roles, .. } = self;
        write!(f, "Token({name:?}, {roles:?})")
    }
}

/// Why an entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("a token needs a 'name' of 1 to {NAME_CHARS_MAX} characters")]
    Name,
    #[error(
        "the token '{name}' needs a 'hash': {SCHEME} and 64 hexadecimal digits, as 'swirl token' makes it"
    )]
    Hash { name: String },
    #[error("the token '{name}' needs 'roles': viewer, operator, deployer or admin")]
    NoRole { name: String },
    #[error("the token '{name}': {source}")]
    Role { name: String, source: UnknownRole },
    #[error("the token '{name}': 'expires' must be an instant such as 2030-01-31T09:00:00Z")]
    Expires { name: String },
    #[error("two tokens have the name '{name}'")]
    Twice { name: String },
    #[error("the tokens '{name}' and '{other}' have the same hash")]
    Same { name: String, other: String },
    #[error("the system gives no randomness: {0}")]
    Randomness(String),
}

impl TryFrom<&TokenEntry> for Token {
    type Error = TokenError;

    fn try_from(entry: &TokenEntry) -> Result<Token, TokenError> {
        let name = entry.name.clone();
        if name.is_empty()
            || name.chars().count() > NAME_CHARS_MAX
            || name.chars().any(char::is_control)
        {
            return Err(TokenError::Name);
        }
        let digits = entry.hash.strip_prefix(SCHEME);
        let hash = digits.and_then(|digits| blake3::Hash::from_hex(digits).ok());
        let Some(hash) = hash else {
            return Err(TokenError::Hash { name });
        };
        if entry.roles.is_empty() {
            return Err(TokenError::NoRole { name });
        }
        let roles: Result<Vec<Role>, UnknownRole> =
            entry.roles.iter().map(|role| role.parse()).collect();
        let roles = match roles {
            Ok(roles) => roles,
            Err(source) => return Err(TokenError::Role { name, source }),
        };
        let expires = match entry.expires.as_deref().map(Timestamp::parse) {
            None => None,
            Some(Ok(at)) => Some(at),
            Some(Err(_)) => return Err(TokenError::Expires { name }),
        };
        Ok(Token {
            name,
            hash,
            roles,
            namespaces: entry.namespaces.clone(),
            expires,
        })
    }
}

impl Token {
    /// Reads all entries. Each name and each hash may occur only once.
    ///
    /// # Errors
    /// The first entry that cannot be used.
    pub fn all(entries: &[TokenEntry]) -> Result<Vec<Token>, TokenError> {
        let tokens: Vec<Token> = entries
            .iter()
            .map(Token::try_from)
            .collect::<Result<_, _>>()?;
        check_distinct(&tokens)?;
        Ok(tokens)
    }
}

/// Refuses tokens that would be taken for one another.
///
/// # Errors
/// Two have the same name or the same hash.
pub fn check_distinct(tokens: &[Token]) -> Result<(), TokenError> {
    for (index, token) in tokens.iter().enumerate() {
        for other in &tokens[..index] {
            let name = token.name.clone();
            if other.name == name {
                return Err(TokenError::Twice { name });
            }
            if other.hash == token.hash {
                let other = other.name.clone();
                return Err(TokenError::Same { name, other });
            }
        }
    }
    Ok(())
}

/// A new token.
///
/// # Errors
/// The system gives no randomness.
pub fn draw() -> Result<String, TokenError> {
    let mut bytes = [0u8; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Randomness(error.to_string()))?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// A token's hash, as a configuration has it.
pub fn hash(token: &str) -> String {
    format!("{SCHEME}{}", blake3::hash(token.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> TokenEntry {
        TokenEntry {
            name: name.to_owned(),
            hash: hash(name),
            roles: vec!["viewer".to_owned(), "deployer".to_owned()],
            namespaces: Vec::new(),
            expires: Some("2030-01-31T09:00:00Z".to_owned()),
        }
    }

    #[test]
    fn an_entry_is_read_or_refused_with_its_name() {
        let token = Token::try_from(&entry("ci")).unwrap();
        assert_eq!(token.roles, [Role::Viewer, Role::Deployer]);
        assert!(!format!("{token:?}").contains(&hash("ci")[10..20]));
        let change = |change: fn(&mut TokenEntry)| {
            let mut entry = entry("ci");
            change(&mut entry);
            Token::try_from(&entry).unwrap_err().to_string()
        };
        for (message, part) in [
            (change(|e| e.name = String::new()), "name"),
            (change(|e| e.name = "a\nb".to_owned()), "name"),
            (change(|e| e.hash = "sha256:00".to_owned()), "'ci'"),
            (change(|e| e.hash = e.hash[..70].to_owned()), "blake3:"),
            (change(|e| e.roles = Vec::new()), "viewer"),
            (change(|e| e.roles = vec!["root".to_owned()]), "root"),
            (change(|e| e.expires = Some("2030".to_owned())), "expires"),
        ] {
            assert!(message.contains(part), "{message}");
        }
        let twice = Token::all(&[entry("a"), entry("a")]).unwrap_err();
        assert!(twice.to_string().contains("two tokens"), "{twice}");
        let mut same = entry("b");
        same.hash = hash("a");
        let same = Token::all(&[entry("a"), same]).unwrap_err();
        assert!(same.to_string().contains("same hash"), "{same}");
    }

    #[test]
    fn tokens_are_drawn() {
        let (one, other) = (draw().unwrap(), draw().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), PREFIX.len() + 43);
        assert_ne!(hash(&one), hash(&other));
        assert_eq!(hash(&one), hash(&one));
    }
}
