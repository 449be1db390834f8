//! What a token is requested with.

use super::Secret;

/// The data of a token request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OAuth2 {
    pub authority: Option<String>,
    pub grant_type: GrantType,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub audiences: Vec<String>,
    pub subject_token: Option<Secret>,
    /// An access token if it isn't given.
    pub subject_token_type: Option<String>,
    pub actor_token: Option<Secret>,
    pub actor_token_type: Option<String>,
    pub requested_subject: Option<String>,
    pub requested_issuer: Option<String>,
    pub found: TokenEndpoint,
    pub client_authentication: ClientAuthentication,
    /// A JWT that proves who the client is.
    pub client_assertion: Option<Secret>,
    /// The request is sent as JSON, not as a form.
    pub as_json: bool,
    /// A token that is a JWT must be from one of them, if there are any.
    pub issuers: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GrantType {
    AuthorizationCode,
    #[default]
    ClientCredentials,
    Password,
    RefreshToken,
    /// RFC 8693.
    TokenExchange,
}

/// How the token endpoint is found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum TokenEndpoint {
    /// Languages 0.7 and 0.8 leave it open.
    #[default]
    Searched,
    /// At this path below the authority.
    Path(String),
    /// By the OpenID configuration of the authority.
    Discovered,
}

/// How the client proves who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClientAuthentication {
    /// By its secret, as the endpoint wants it.
    #[default]
    Offered,
    SecretBasic,
    SecretPost,
    /// By a JWT, signed with its secret.
    SecretJwt,
    /// By a JWT that it was given.
    PrivateKeyJwt,
    None,
}

impl OAuth2 {
    /// The definition says where tokens are had. Its errors are those of an authentication then.
    pub(crate) fn is_exact(&self) -> bool {
        self.found != TokenEndpoint::Searched
    }
}
