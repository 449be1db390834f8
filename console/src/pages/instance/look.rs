//! The parameters of the page's address: how the instance is looked at.

use serde::Deserialize;
use url::form_urlencoded::Serializer;

#[derive(Deserialize, Default)]
pub struct Look {
    #[serde(default)]
    pub done: Option<String>,
    /// The first line of the history that is shown.
    #[serde(default)]
    pub from: Option<usize>,
    /// The line of the history at which the instance is shown.
    #[serde(default)]
    pub at: Option<usize>,
    /// The key of the chosen step.
    #[serde(default)]
    pub step: Option<String>,
    /// The key of the step of which all parts are shown.
    #[serde(default)]
    pub all: Option<String>,
    /// How times are shown: `clock`, or since the start.
    #[serde(default)]
    pub times: Option<String>,
    /// The kind of lines.
    #[serde(default)]
    pub show: Option<String>,
    #[serde(default)]
    pub branch: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
}

impl Look {
    /// Whether lines of the history are filtered.
    pub fn filters(&self) -> bool {
        let all = [&self.show, &self.branch, &self.text];
        all.into_iter().flatten().any(|given| !given.is_empty())
    }

    pub fn is_show(&self, wanted: &str) -> bool {
        self.show.as_deref() == Some(wanted)
    }

    pub fn is_branch(&self, wanted: &str) -> bool {
        self.branch.as_deref() == Some(wanted)
    }

    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    pub fn by_clock(&self) -> bool {
        self.times.as_deref() == Some("clock")
    }

    /// The address of the page with these of its parameters; further ones may follow.
    pub fn address(&self, path: &str, kept: &[&str]) -> String {
        let at = self.at.map(|at| at.to_string());
        let all = [
            ("at", at.as_ref()),
            ("times", self.times.as_ref()),
            ("step", self.step.as_ref()),
            ("all", self.all.as_ref()),
        ];
        let mut address = format!("/console/instances/{path}?");
        for (name, value) in all {
            if let Some(value) = value.filter(|_| kept.contains(&name)) {
                let pair = Serializer::new(String::new())
                    .append_pair(name, value)
                    .finish();
                address.push_str(&format!("{pair}&amp;"));
            }
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_what_was_chosen() {
        let look = Look {
            at: Some(7),
            step: Some("a\"&b".to_owned()),
            times: Some("clock".to_owned()),
            ..Look::default()
        };
        assert_eq!(
            look.address("i", &["at", "step"]),
            "/console/instances/i?at=7&amp;step=a%22%26b&amp;"
        );
        assert_eq!(look.address("i", &[]), "/console/instances/i?");
    }
}
