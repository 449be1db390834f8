//! An OpenID Connect provider for tests: authorization code flow with PKCE, refresh tokens, sign-out. It has one user,
//! Ada, and one key. Its [`Conduct`] can be changed at any time, also to what no provider should do.
//!
//! The rules that the other side must keep are checked: a code is exchanged once, by whoever began, with the address
//! that it began with.

mod pages;
mod signing;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use url::Url;

use signing::Key;

/// The client that is registered.
pub const CLIENT: &str = "console";
/// The audience of access tokens.
pub const AUDIENCE: &str = "swirl";

type Fields = BTreeMap<String, String>;

/// How the provider behaves.
#[derive(Debug, Clone)]
pub struct Conduct {
    /// Every answer is an error.
    pub is_down: bool,
    /// How long tokens last, in seconds; negative: they have expired already.
    pub lasts: i64,
    /// Claims of ID tokens, in place of the right ones.
    pub id_claims: Value,
    /// Claims of access tokens in addition to the usual ones; `None`: they are not JWTs.
    pub access_claims: Option<Value>,
    /// There are refresh tokens.
    pub refreshes: bool,
    /// The error that the token endpoint answers with.
    pub refusal: Option<&'static str>,
    /// The address for signing out is published.
    pub signs_out: bool,
}

impl Default for Conduct {
    fn default() -> Conduct {
        Conduct {
            is_down: false,
            lasts: 300,
            id_claims: json!({}),
            access_claims: Some(json!({"roles": ["viewer"]})),
            refreshes: false,
            refusal: None,
            signs_out: true,
        }
    }
}

/// The provider, until the runtime ends.
#[derive(Clone)]
pub struct Login {
    /// With the name `localhost`: for browsers, another site than `127.0.0.1`.
    pub issuer: String,
    inner: Arc<Inner>,
}

struct Inner {
    key: Key,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    conduct: Conduct,
    codes: HashMap<String, Fields>,
    refreshes: Vec<String>,
    id_tokens: Vec<String>,
    /// Forms that the token endpoint was sent, with the header `authorization`.
    forms: Vec<Fields>,
    issued: usize,
    sign_outs: usize,
}

/// An answer of the token endpoint: 200, or 400 with an error.
type Answered = Result<Value, &'static str>;

impl Login {
    pub async fn start() -> Result<Login> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let login = Login {
            issuer: format!("http://localhost:{}", listener.local_addr()?.port()),
            inner: Arc::new(Inner {
                key: Key::draw()?,
                state: Mutex::default(),
            }),
        };
        let router = pages::router(login.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(login)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.inner.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    pub fn behave(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.state().conduct);
    }

    /// The forms that the token endpoint was sent, each with the header `authorization` as a field.
    pub fn forms(&self) -> Vec<BTreeMap<String, String>> {
        self.state().forms.clone()
    }

    /// All ID tokens that it has given out.
    pub fn id_tokens(&self) -> Vec<String> {
        self.state().id_tokens.clone()
    }

    /// How often Ada's browser was led here to sign out.
    pub fn sign_outs(&self) -> usize {
        self.state().sign_outs
    }

    /// Ada signs in at this address; returns the address that her browser is led back to.
    ///
    /// # Errors
    /// The address isn't one that a client may lead to.
    pub fn consent(&self, address: &str) -> Result<String> {
        let address = Url::parse(address)?;
        ensure!(
            address.path() == "/authorize",
            "not of the provider: {address}"
        );
        let query: Fields = address.query_pairs().into_owned().collect();
        let has = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        ensure!(has("client_id") == CLIENT, "an unknown client: {address}");
        ensure!(
            has("response_type") == "code",
            "no code is wanted: {address}"
        );
        ensure!(has("code_challenge_method") == "S256", "no PKCE: {address}");
        let is_openid = has("scope").split(' ').any(|scope| scope == "openid");
        ensure!(is_openid, "not OpenID Connect: {address}");
        for name in ["state", "nonce", "code_challenge"] {
            ensure!(
                has(name).len() >= 32,
                "{name} is missing or short: {address}"
            );
        }
        let mut back = Url::parse(has("redirect_uri"))?;
        if !back.path().ends_with("/console/sign-in/callback") {
            bail!("an address that isn't registered: {back}");
        }
        let mut state = self.state();
        state.issued += 1;
        let code = format!("code-{}", state.issued);
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", has("state"));
        state.codes.insert(code, query);
        Ok(back.into())
    }

    fn discovery(&self) -> Value {
        let issuer = &self.issuer;
        let mut document = json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
        });
        if self.state().conduct.signs_out {
            document["end_session_endpoint"] = format!("{issuer}/logout").into();
        }
        document
    }

    fn is_down(&self) -> bool {
        self.state().conduct.is_down
    }

    /// Exchanges a code or a refresh token.
    fn exchange(&self, form: Fields) -> Answered {
        let mut state = self.state();
        state.forms.push(form.clone());
        if let Some(refusal) = state.conduct.refusal {
            return Err(refusal);
        }
        let has = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let nonce = match has("grant_type") {
            "authorization_code" => {
                let begun = state.codes.remove(has("code")).ok_or("invalid_grant")?;
                let challenge =
                    URL_SAFE_NO_PAD.encode(digest(&SHA256, has("code_verifier").as_bytes()));
                if begun["code_challenge"] != challenge
                    || begun["redirect_uri"] != has("redirect_uri")
                {
                    return Err("invalid_grant");
                }
                Some(begun["nonce"].clone())
            }
            "refresh_token" => {
                let token = has("refresh_token");
                let at = state.refreshes.iter().position(|known| known == token);
                state.refreshes.swap_remove(at.ok_or("invalid_grant")?);
                None
            }
            _ => return Err("unsupported_grant_type"),
        };
        let answer = self.tokens(&mut state, nonce);
        answer.map_err(|_| "server_error")
    }

    fn tokens(&self, state: &mut State, nonce: Option<String>) -> Result<Value> {
        state.issued += 1;
        let (conduct, number) = (state.conduct.clone(), state.issued);
        let usual = |audience: &str| -> Result<Map<String, Value>> {
            let ends = signing::now()? + conduct.lasts;
            let claims = json!({"iss": self.issuer, "aud": audience, "sub": "ada", "exp": ends, "jti": number});
            claims.as_object().cloned().context("no claims")
        };
        let mut id = usual(CLIENT)?;
        if let Some(nonce) = nonce {
            id.insert("nonce".to_owned(), nonce.into());
        }
        id.extend(conduct.id_claims.as_object().cloned().unwrap_or_default());
        let access = match &conduct.access_claims {
            Some(more) => {
                let mut access = usual(AUDIENCE)?;
                access.extend(more.as_object().cloned().unwrap_or_default());
                self.inner.key.token(&Value::Object(access))
            }
            None => format!("opaque-{number}"),
        };
        let id = self.inner.key.token(&Value::Object(id));
        state.id_tokens.push(id.clone());
        let mut answer = json!({
            "access_token": access,
            "id_token": id,
            "token_type": "Bearer",
            "expires_in": conduct.lasts,
        });
        if conduct.refreshes {
            let refresh = format!("refresh-{number}");
            state.refreshes.push(refresh.clone());
            answer["refresh_token"] = refresh.into();
        }
        Ok(answer)
    }

    /// The address that a browser is led to after signing out.
    fn sign_out(&self, query: &Fields) -> Result<String> {
        ensure!(
            query.get("client_id").is_some_and(|id| id == CLIENT),
            "an unknown client"
        );
        self.state().sign_outs += 1;
        let back = query.get("post_logout_redirect_uri");
        back.cloned()
            .ok_or_else(|| anyhow!("no address to go back to"))
    }
}
