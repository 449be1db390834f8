//! All static tokens: those in the configuration, and those in a file that may change.

use std::sync::{Arc, PoisonError, RwLock};

use swirl_access::{Token, TokenError, check_distinct};

/// Reads the file of tokens. It may block.
pub type ReadTokens = Arc<dyn Fn() -> Result<Vec<Token>, String> + Send + Sync>;

pub struct Tokens {
    fixed: Vec<Token>,
    read: Option<ReadTokens>,
    /// The tokens of the configuration and of the file.
    current: RwLock<Arc<Vec<Token>>>,
}

impl Tokens {
    /// # Errors
    /// The file cannot be used, or two tokens cannot be distinguished.
    pub fn new(fixed: Vec<Token>, read: Option<ReadTokens>) -> Result<Tokens, String> {
        let tokens = Tokens {
            fixed,
            read,
            current: RwLock::default(),
        };
        tokens.read_again()?;
        Ok(tokens)
    }

    pub fn none() -> Tokens {
        Tokens {
            fixed: Vec::new(),
            read: None,
            current: RwLock::default(),
        }
    }

    pub(super) fn has_file(&self) -> bool {
        self.read.is_some()
    }

    pub fn all(&self) -> Arc<Vec<Token>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// Returns the token with this text. All hashes are compared, each in constant time.
    pub(super) fn find(&self, text: &str) -> Option<Token> {
        let hash = blake3::hash(text.as_bytes());
        let mut found = None;
        for token in self.all().iter() {
            if token.hash == hash {
                found = Some(token.clone());
            }
        }
        found
    }

    /// Reads the file again. If that fails, the known tokens stay valid. Returns whether anything has changed.
    pub(super) fn read_again(&self) -> Result<bool, String> {
        let mut tokens = self.fixed.clone();
        if let Some(read) = &self.read {
            tokens.extend(read()?);
        }
        check_distinct(&tokens).map_err(|error: TokenError| error.to_string())?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = **current != tokens;
        *current = Arc::new(tokens);
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use swirl_access::{TokenEntry, hash};

    fn token(name: &str) -> Token {
        let entry = TokenEntry {
            name: name.to_owned(),
            hash: hash(name),
            roles: vec!["viewer".to_owned()],
            namespaces: Vec::new(),
            expires: None,
        };
        Token::try_from(&entry).unwrap()
    }

    #[test]
    fn a_changed_file_takes_effect_and_a_broken_one_does_not() {
        let file = Arc::new(Mutex::new(Ok(vec![token("b")])));
        let shared = file.clone();
        let read: ReadTokens = Arc::new(move || shared.lock().unwrap().clone());
        let tokens = Tokens::new(vec![token("a")], Some(read)).unwrap();
        assert!(tokens.find("a").is_some() && tokens.find("b").is_some());
        assert!(tokens.find("c").is_none() && tokens.find("").is_none());
        assert_eq!(tokens.read_again(), Ok(false));

        *file.lock().unwrap() = Ok(vec![token("c")]);
        assert_eq!(tokens.read_again(), Ok(true));
        assert!(tokens.find("b").is_none() && tokens.find("c").is_some());

        *file.lock().unwrap() = Err("it is not valid TOML".to_owned());
        assert!(tokens.read_again().is_err());
        assert!(tokens.find("a").is_some() && tokens.find("c").is_some());

        *file.lock().unwrap() = Ok(vec![token("a")]);
        assert!(tokens.read_again().is_err(), "a name occurs twice");
    }
}
