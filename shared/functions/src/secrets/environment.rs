//! Secrets from environment variables.

use async_trait::async_trait;
use swirl_model::Data;
use swirl_ports::Secrets;

use super::collect;

/// The prefix of the variables' names.
pub const PREFIX: &str = "SWIRL_SECRET_";

/// The secret `api-key` is in the variable `SWIRL_SECRET_API_KEY`: the name in upper case, with `_` instead of all
/// characters except ASCII letters and digits. Values are strings.
///
/// The prefix prevents a definition from reading other variables of the process. Names that map to the same variable
/// have the same value.
pub struct Environment {
    look_up: LookUp,
}

type LookUp = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Environment {
    /// Reads the variables of this process.
    pub fn new() -> Environment {
        Environment::over(|variable| std::env::var(variable).ok())
    }

    /// Reads other variables, with a function from a variable's name to its value.
    pub fn over(look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Environment {
        Environment {
            look_up: Box::new(look_up),
        }
    }

    /// The name of a secret's variable.
    pub fn variable(name: &str) -> String {
        let mapped = name.chars().map(|c| match c.to_ascii_uppercase() {
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        });
        PREFIX.chars().chain(mapped).collect()
    }
}

impl Default for Environment {
    fn default() -> Environment {
        Environment::new()
    }
}

#[async_trait]
impl Secrets for Environment {
    async fn get(&self, names: &[String]) -> Data {
        collect(names, |name| {
            (self.look_up)(&Environment::variable(name)).map(Data::string)
        })
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Environment({PREFIX}*)")
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[test]
    fn names_become_variables() {
        for (name, variable) in [
            ("API_KEY", "SWIRL_SECRET_API_KEY"),
            ("api-key.v2", "SWIRL_SECRET_API_KEY_V2"),
            ("straße", "SWIRL_SECRET_STRA_E"),
        ] {
            assert_eq!(Environment::variable(name), variable);
        }
    }

    #[tokio::test]
    async fn only_prefixed_variables_are_read() {
        let environment = Environment::over(|variable| match variable {
            "SWIRL_SECRET_TOKEN" => Some("s3cret".to_owned()),
            "SWIRL_SECRET_EMPTY" => Some(String::new()),
            "PATH" => Some("/bin".to_owned()),
            _ => None,
        });
        let names = ["token", "empty", "PATH", "other"].map(str::to_owned);
        assert_eq!(
            environment.get(&names).await,
            data!({"token": "s3cret", "empty": ""})
        );
    }

    #[tokio::test]
    async fn a_missing_variable_is_a_missing_secret() {
        let names = ["a name that nobody sets".to_owned()];
        assert_eq!(Environment::new().get(&names).await, data!({}));
    }
}
