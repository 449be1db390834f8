//! A text that must not be shown.

use std::fmt;

use swirl_model::redact::Redactor;

/// A secret text. Its formatted form is `***`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself. Use it only in the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Removes secrets from a text that a service answered.
pub(crate) fn redact(text: &str, secrets: &[String]) -> String {
    Redactor::new(secrets).text(text).into_owned()
}

/// Removes secrets from a text that a service answered, and cuts the rest off afterwards: a cut through a secret would
/// leave a part that could not be recognised.
pub(crate) fn beginning(text: &str, secrets: &[String], bytes_max: usize) -> String {
    let mut text = redact(text, secrets);
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_without_a_part_of_a_secret() {
        let secrets = ["hunter2".to_owned()];
        assert_eq!(beginning("x hunter2 y", &secrets, 6), "x *** ");
        assert_eq!(beginning("x hunter2 y", &secrets, 4), "x **");
        assert_eq!(beginning("xé", &[], 2), "x");
        assert_eq!(beginning("xé", &[], 9), "xé");
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "***");
    }
}
