//! Credentials in an `Authorization` header, for services that don't describe how to send them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;

use super::{Auth, Hints, Secret, Tokens};
use crate::{CallError, CallErrorKind};

/// The value of the header.
pub(crate) struct Authorization {
    pub(crate) value: Secret,
    /// These are removed from the service's answers.
    pub(crate) secrets: Vec<String>,
    /// The token in the header, if it can be replaced by a fresh one.
    token: Option<Secret>,
}

impl Authorization {
    /// Obtains a token first, if one is needed. `refused` is a token that the service did not accept, so it isn't used
    /// again.
    ///
    /// # Errors
    /// No token could be obtained.
    pub(crate) async fn of(
        auth: &Auth,
        tokens: &Tokens,
        refused: Option<&Authorization>,
    ) -> Result<Authorization, CallError> {
        Ok(match auth {
            Auth::Basic { username, password } => {
                let encoded = STANDARD.encode(format!("{username}:{}", password.expose()));
                Authorization {
                    value: Secret::new(format!("Basic {encoded}")),
                    secrets: vec![password.expose().to_owned(), encoded],
                    token: None,
                }
            }
            Auth::Bearer { token } => Authorization::bearer(token),
            Auth::Digest { .. } => {
                let message = "digest authentication needs an HTTP service, and this isn't one";
                return Err(CallError::new(CallErrorKind::Auth, message));
            }
            Auth::OAuth2(oauth2) => {
                let refused = refused.and_then(|refused| refused.token.as_ref());
                let token = tokens.token(oauth2, &Hints::default(), refused).await?;
                Authorization {
                    token: Some(token.clone()),
                    ..Authorization::bearer(&token)
                }
            }
        })
    }

    /// The value of the header.
    ///
    /// # Errors
    /// It has characters that a header cannot have.
    pub(crate) fn header(&self) -> Result<HeaderValue, CallError> {
        let mut value = HeaderValue::from_str(self.value.expose()).map_err(|_| {
            let message = "the credentials have characters that cannot be sent";
            CallError::new(CallErrorKind::Auth, message)
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn bearer(token: &Secret) -> Authorization {
        Authorization {
            value: Secret::new(format!("Bearer {}", token.expose())),
            secrets: vec![token.expose().to_owned()],
            token: None,
        }
    }

    /// Whether it makes sense to retry with a fresh token when the service refuses this one.
    pub(crate) fn can_renew(&self) -> bool {
        self.token.is_some()
    }
}
