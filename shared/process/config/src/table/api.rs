//! Access to the API.

use crate::kind::{SECOND_MS, ValueKind, count, duration};
use crate::setting::Setting;

const ALGORITHMS: ValueKind = ValueKind::Word(&[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
]);
const WEB: ValueKind = ValueKind::Url(&["https", "http"]);

pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "api.base_path",
        ValueKind::Text,
        "The path below which the API and the console are reached from outside, such as `/swirl`, if other services share \
         the host name. Requests without it are served as well, so probes need no change, and a proxy may remove it.",
    )
    .coordinator(),
    Setting::new(
        "auth.mode",
        ValueKind::Word(&["on", "off"]),
        "`off`: anyone who reaches the port may do everything. `on` needs tokens or a provider.",
    )
    .default("on")
    .coordinator(),
    Setting::new(
        "auth.tokens",
        ValueKind::Tokens,
        "Static tokens, each a table with `name`, `hash`, `roles` (viewer, operator, deployer, admin), and \
         optionally `namespaces` and `expires`. `swirl token create` makes them. In a variable or flag: as \
         JSON.",
    )
    .coordinator(),
    Setting::new(
        "auth.tokens_file",
        ValueKind::Path,
        "A TOML file with `[[tokens]]` as in `auth.tokens`. It is read again when it changes.",
    )
    .coordinator(),
    Setting::new(
        "auth.refused_max",
        count(0, 1_000_000),
        "How many refused tokens an address may send at once. One more is allowed every three seconds; beyond that the answer is 429. 0: no limit.",
    )
    .default("20")
    .coordinator(),
    Setting::new(
        "auth.oidc.issuer",
        WEB,
        "The provider: the `iss` of its tokens, and where its keys are discovered.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.audience",
        ValueKind::List(&ValueKind::Text),
        "The accepted audiences: tokens must name one of these (`aud`).",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.jwks_url",
        WEB,
        "The address of the provider's keys, if discovery doesn't find it.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.jwks_file",
        ValueKind::Path,
        "A file with the provider's keys (JWKS), in place of a URL.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.algorithms",
        ValueKind::List(&ALGORITHMS),
        "The signatures that are accepted.",
    )
    .default("RS256,ES256,EdDSA")
    .coordinator(),
    Setting::new(
        "auth.oidc.roles_claim",
        ValueKind::Text,
        "The claim that holds a token's roles, or a path such as `realm_access.roles`.",
    )
    .default("roles")
    .coordinator(),
    Setting::new(
        "auth.oidc.roles",
        ValueKind::Map,
        "Maps values of that claim to roles: `\"sre-team\" = \"operator\"`. Without it, the claim holds the \
         names of roles.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.namespaces_claim",
        ValueKind::Text,
        "The claim that holds the namespaces of a token; a token without it has none. If this isn't set, \
         tokens are valid for all.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.leeway",
        duration(0, 300 * SECOND_MS),
        "The largest difference between clocks.",
    )
    .default("30s")
    .coordinator(),
    Setting::new(
        "auth.oidc.tls_ca",
        ValueKind::Path,
        "Certificates in PEM that sign the provider's, besides those of the machine.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.client_id",
        ValueKind::Text,
        "The console as the provider knows it. With it, visitors of the console can sign in at the provider; without \
         it, only with tokens.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.client_secret",
        ValueKind::Text,
        "The client's secret; a public client has none.",
    )
    .coordinator()
    .secret(),
    Setting::new(
        "auth.oidc.client_secret_file",
        ValueKind::Path,
        "A file with the client's secret.",
    )
    .coordinator(),
    Setting::new(
        "auth.oidc.scopes",
        ValueKind::List(&ValueKind::Text),
        "What the console asks the provider for. `openid` must be among them.",
    )
    .default("openid")
    .coordinator(),
    Setting::new(
        "auth.oidc.redirect_url",
        WEB,
        "The address to which the provider sends the browser back, as it is registered there: that of the console with \
         the path `/console/sign-in/callback`. Without it, it follows from the host that the browser asks for.",
    )
    .coordinator(),
];
