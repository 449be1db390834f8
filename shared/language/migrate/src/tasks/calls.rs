//! Calls of functions.

use swirl_model::Data;
use swirl_model::workflow::{AuthDef, AuthScheme, Call, Function, FunctionKind, Template};

use super::writer::{Writer, object};

impl Writer<'_> {
    /// A call over the data of the action, which is at `data`.
    pub fn call(&mut self, call: &Call, data: &str) -> Data {
        let function = &self.workflow[call.function];
        if call.detached {
            self.cannot(format!(
                "nothing waits for the call of '{}' ('invoke: async'); tasks of DSL 1.0 are waited for",
                function.name
            ));
        }
        match &function.kind {
            FunctionKind::Rest => self.openapi(function, call, data),
            FunctionKind::Custom(word) if word == "custom" => self.custom(function, call, data),
            kind => {
                self.cannot(format!(
                    "the function '{}' is of the type '{}', for which DSL 1.0 has no call",
                    function.name,
                    kind.as_str()
                ));
                Data::object()
            }
        }
    }

    fn openapi(&mut self, function: &Function, call: &Call, data: &str) -> Data {
        let Some((document, operation)) = function.operation.rsplit_once('#') else {
            self.cannot(format!(
                "the operation of '{}' isn't the address of a document with an operation in it",
                function.name
            ));
            return Data::object();
        };
        if function.operation.trim_start().starts_with('{') {
            self.cannot(format!(
                "the OpenAPI document of '{}' is written in the definition; DSL 1.0 needs its address",
                function.name
            ));
        }
        let endpoint = match function.resource_auth {
            None => Data::string(document),
            Some(id) => object([
                ("uri", Data::string(document)),
                ("authentication", self.used(&self.workflow[id])),
            ]),
        };
        let mut with = object([
            ("document", object([("endpoint", endpoint)])),
            ("operationId", Data::string(operation)),
        ]);
        match &call.arguments {
            Some(Template::Object(_) | Template::Literal(_)) => {
                let arguments = call.arguments.as_ref();
                let value = arguments.map(|arguments| self.value(arguments, data));
                let value = value.unwrap_or_default();
                if value.as_object().is_some_and(|members| !members.is_empty()) {
                    with.set("parameters", value);
                }
            }
            Some(_) => self.cannot(format!(
                "the arguments of '{}' are one expression; in DSL 1.0 each parameter has its own",
                function.name
            )),
            None => self.cannot(format!(
                "'{}' gets the state data itself; in DSL 1.0 each parameter has its own expression",
                function.name
            )),
        }
        self.cannot_if(
            call.selection_set.is_some(),
            "a call has a 'selectionSet', which only GraphQL has",
        );
        if let Some(id) = function.auth {
            let used = self.used(&self.workflow[id]);
            with.set("authentication", used);
        }
        self.hints(function);
        self.redirects(&mut with);
        object([("call", Data::string("openapi")), ("with", with)])
    }

    /// The address of a server in the metadata has no place in DSL 1.0.
    fn hints(&mut self, function: &Function) {
        if function.metadata.get("server").is_some() {
            self.cannot(format!(
                "the metadata of '{}' name the server; in DSL 1.0 the OpenAPI document does",
                function.name
            ));
        }
    }

    /// `rest:METHOD:URL`.
    fn custom(&mut self, function: &Function, call: &Call, data: &str) -> Data {
        let mut words = function.operation.splitn(3, ':');
        let (Some("rest"), Some(method), Some(url)) = (words.next(), words.next(), words.next())
        else {
            self.cannot(format!(
                "the function '{}' of the type 'custom' is carried out by a connector; DSL 1.0 has none",
                function.name
            ));
            return Data::object();
        };
        self.cannot_if(
            !url.contains("://"),
            "the address of a request has no host; in DSL 1.0 it needs one",
        );
        let method = method.to_ascii_uppercase();
        let arguments = match &call.arguments {
            Some(Template::Object(arguments)) => arguments.clone(),
            Some(Template::Literal(value)) => {
                let members = value.as_object().into_iter().flat_map(|all| all.iter());
                let literal = members.map(|(name, value)| {
                    let name = Data(name.clone()).to_text();
                    (name, Template::Literal(Data(value.clone())))
                });
                literal.collect()
            }
            _ => {
                self.cannot("the arguments of a request are one expression");
                Vec::new()
            }
        };
        self.request(function, &method, url, &arguments, data)
    }

    fn request(
        &mut self,
        function: &Function,
        method: &str,
        url: &str,
        arguments: &[(String, Template)],
        data: &str,
    ) -> Data {
        let mut uri = url.to_owned();
        let (mut query, mut headers, mut rest) = (Data::object(), Data::object(), Data::object());
        let mut body = None;
        let in_query = matches!(method, "GET" | "HEAD" | "DELETE" | "OPTIONS");
        let flag = function.metadata.get("argumentsAreBody");
        let are_body = flag.is_some_and(|flag| flag.to_text().eq_ignore_ascii_case("true"));
        for (name, value) in arguments {
            let place = format!("{{{name}}}");
            if are_body && !in_query {
                rest.set(name, self.value(value, data));
            } else if url.contains(&place) {
                let text = self.in_path(function, name, value, data);
                uri = uri.replace(&place, &text);
            } else if let Some(name) = name.strip_prefix("QUERY_") {
                self.fits_query(function, name, value);
                query.set(name, self.value(value, data));
            } else if let Some(name) = name.strip_prefix("HEADER_") {
                headers.set(name, self.value(value, data));
            } else if in_query {
                self.fits_query(function, name, value);
                query.set(name, self.value(value, data));
            } else if name == "body" {
                body = Some(self.value(value, data));
            } else {
                rest.set(name, self.value(value, data));
            }
        }
        if uri.contains('{') && !uri.contains("${") {
            self.cannot(format!(
                "a place of the address of '{}' has no argument",
                function.name
            ));
        }
        let filled = |value: &Data| value.as_object().is_some_and(|members| !members.is_empty());
        if filled(&rest) {
            if body.is_some() {
                self.cannot(format!(
                    "'{}' gets 'body', which is the whole body, and further arguments beside it; such a call fails",
                    function.name
                ));
            }
            body = body.or(Some(rest));
        } else if are_body && !in_query {
            body = Some(rest);
        }
        let mut with = object([("method", Data::string(method))]);
        let endpoint = match function.auth {
            None => Data::string(uri),
            Some(id) => object([
                ("uri", Data::string(uri)),
                ("authentication", self.used(&self.workflow[id])),
            ]),
        };
        with.set("endpoint", endpoint);
        if filled(&headers) {
            with.set("headers", headers);
        }
        if filled(&query) {
            with.set("query", query);
        }
        if let Some(body) = body {
            with.set("body", body);
        }
        self.redirects(&mut with);
        object([("call", Data::string("http")), ("with", with)])
    }

    /// Redirects within one origin are followed, as before.
    fn redirects(&mut self, with: &mut Data) {
        with.set("redirect", Data::bool(true));
        self.note(
            "a redirect to another origin was an error; with 'redirect: true' it isn't followed either, and the task \
             completes with its answer",
        );
    }

    /// The text of an argument in the path of an address.
    fn in_path(&mut self, function: &Function, name: &str, value: &Template, data: &str) -> String {
        match value {
            Template::Literal(value) if matches!(value.kind(), "string" | "number" | "boolean") => {
                encoded(&value.to_text())
            }
            Template::Expression(_) | Template::Loose(..) | Template::Text(_) => {
                let text = self.value_text(value, data);
                format!("${{ {text} | tostring | @uri }}")
            }
            _ => {
                self.cannot(format!(
                    "the argument '{name}' of '{}' is in the path of its address, but is not a string",
                    function.name
                ));
                String::new()
            }
        }
    }

    /// An object in the query had a parameter for each of its members.
    fn fits_query(&mut self, function: &Function, name: &str, value: &Template) {
        let is_object = match value {
            Template::Object(_) => true,
            Template::Literal(value) => value.is_object(),
            _ => false,
        };
        if is_object {
            self.cannot(format!(
                "the argument '{name}' of '{}' is an object in the query; in DSL 1.0 only strings, numbers, booleans and lists of them have a form there",
                function.name
            ));
        }
    }

    fn used(&self, auth: &AuthDef) -> Data {
        object([("use", Data::string(auth.name.as_str()))])
    }

    /// `use.authentications`.
    pub fn authentications(&mut self) -> Data {
        let mut all = Data::object();
        for auth in &self.workflow.auth {
            let scheme = match auth.scheme {
                AuthScheme::Basic => self.credentials(auth, "basic", &["username", "password"]),
                AuthScheme::Bearer => self.credentials(auth, "bearer", &["token"]),
                AuthScheme::OAuth2 => self.oauth2(auth),
                // Only DSL 1.0 has it.
                AuthScheme::Digest => None,
            };
            if let Some(scheme) = scheme {
                all.set(&auth.name, scheme);
            }
        }
        all
    }

    fn credentials(&mut self, auth: &AuthDef, scheme: &str, names: &[&str]) -> Option<Data> {
        let value = self.value(&auth.properties, ".");
        let mut properties = Data::object();
        for name in names {
            match value.get(name) {
                Some(found) => properties.set(name, found),
                None => {
                    self.cannot(format!(
                        "the authentication '{}' isn't given as '{}'",
                        auth.name,
                        names.join("' and '")
                    ));
                    return None;
                }
            }
        }
        Some(object([(scheme, properties)]))
    }

    fn oauth2(&mut self, auth: &AuthDef) -> Option<Data> {
        let value = self.value(&auth.properties, ".");
        let (Some(authority), Some(grant)) = (value.get("authority"), value.get("grantType"))
        else {
            self.cannot(format!(
                "the authentication '{}' has no 'authority' or no 'grantType'",
                auth.name
            ));
            return None;
        };
        let grant = match grant.to_text().as_str() {
            "clientCredentials" => "client_credentials",
            "password" | "resourceOwner" => "password",
            "tokenExchange" => "urn:ietf:params:oauth:grant-type:token-exchange",
            _ => {
                self.cannot(format!("the grant of '{}' is an expression", auth.name));
                return None;
            }
        };
        let mut oidc = object([("authority", authority), ("grant", Data::string(grant))]);
        let mut client = Data::object();
        for (old, new) in [("clientId", "id"), ("clientSecret", "secret")] {
            if let Some(value) = value.get(old) {
                client.set(new, value);
            }
        }
        // The client of the older editions sends its secret so, unless the server offers only another way.
        if client.get("secret").is_some() {
            client.set("authentication", Data::string("client_secret_basic"));
        }
        oidc.set("client", client);
        for name in ["username", "password"] {
            if let Some(value) = value.get(name) {
                oidc.set(name, value);
            }
        }
        for name in ["scopes", "audiences"] {
            if let Some(value) = value.get(name) {
                let texts = self.texts(auth, name, value);
                oidc.set(name, texts);
            }
        }
        for name in ["requestedSubject", "requestedIssuer"] {
            if value.get(name).is_some() {
                self.cannot(format!(
                    "the authentication '{}' has '{name}', for which DSL 1.0 has no property",
                    auth.name
                ));
            }
        }
        if let Some(token) = value.get("subjectToken") {
            let kind = Data::string("urn:ietf:params:oauth:token-type:access_token");
            oidc.set("subject", object([("token", token), ("type", kind)]));
        }
        self.note(format!(
            "the tokens of '{}' come from the address that the discovery document of its 'authority' names",
            auth.name
        ));
        Some(object([("oidc", oidc)]))
    }

    /// A list of texts, as DSL 1.0 needs it.
    fn texts(&mut self, auth: &AuthDef, name: &str, value: Data) -> Data {
        let is_expression = |value: &Data| value.as_str().is_some_and(|text| text.contains("${"));
        let count = match value.as_array() {
            Some(items) => items.len(),
            None if is_expression(&value) => {
                self.cannot(format!(
                    "'{name}' of the authentication '{}' is one expression; DSL 1.0 has a list there",
                    auth.name
                ));
                return value;
            }
            None => 1,
        };
        if name == "audiences" && count > 1 {
            self.cannot(format!(
                "the authentication '{}' asks for several audiences, each as a parameter of its own; in DSL 1.0 they are \
                 one parameter",
                auth.name
            ));
        }
        match value.as_array() {
            Some(_) => value,
            None => Data::array(vec![value]),
        }
    }
}

/// As a segment of a path: only the signs that are never reserved stay (RFC 3986).
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
