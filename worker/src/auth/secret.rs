//! A text that must not be seen.

use std::fmt;

/// A secret text. Formatting it shows `***`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for the request that needs it and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Shorter secrets aren't cut out of answers: the cuts would tell where they are.
const REDACTED_LEN_MIN: usize = 4;

/// Cuts secrets out of a text that a service answered, also as they stand in JSON strings.
pub(crate) fn redact(text: &str, secrets: &[String]) -> String {
    // Longest first: a secret may be part of another.
    let mut forms: Vec<String> = secrets
        .iter()
        .filter(|secret| secret.len() >= REDACTED_LEN_MIN)
        .flat_map(|secret| {
            let json = serde_json::Value::from(secret.as_str()).to_string();
            [secret.clone(), json[1..json.len() - 1].to_owned()]
        })
        .collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.iter().fold(text.to_owned(), |text, form| {
        if text.contains(form.as_str()) {
            text.replace(form.as_str(), "***")
        } else {
            text
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "***");
    }

    #[test]
    fn secrets_are_cut_out_plain_and_as_json() {
        let secrets = [
            "pa\"ss".to_owned(),
            "token-longer".to_owned(),
            "token".to_owned(),
            "a".to_owned(),
        ];
        assert_eq!(
            redact(
                r#"{"a": "pa\"ss", "b": "token-longer token"} pa"ss"#,
                &secrets
            ),
            r#"{"a": "***", "b": "*** ***"} ***"#
        );
    }
}
