//! Proto files, compiled at deployment.

use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::google::GoogleApi;
use super::sources::Sources;
use crate::problem::{FaultyPart, Unusable};

/// The minimum similarity for suggesting a name.
const LIKENESS_MIN: f64 = 0.75;

/// A compiled proto file.
pub(super) struct Proto {
    pool: DescriptorPool,
    name: String,
}

impl Proto {
    /// Compiles a file together with its imports.
    ///
    /// # Errors
    /// A sentence, with line and column if the error is in the file's text.
    pub(super) fn compile(sources: Sources) -> Result<Proto, String> {
        let name = sources.name.clone();
        let mut resolver = ChainFileResolver::new();
        resolver.add(sources);
        resolver.add(GoogleApi);
        resolver.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(resolver);
        // The `Debug` form of these errors is the one that contains line and column.
        compiler
            .include_imports(true)
            .open_file(&name)
            .map_err(|error| match error.is_parse() {
                true => unquoted(&name, &format!("{error:?}")),
                false => explain(&format!("{error:?}")),
            })?;
        Ok(Proto {
            pool: compiler.descriptor_pool(),
            name,
        })
    }

    /// Finds a method of a service. The service may be named with or without its package.
    pub(super) fn method(&self, service: &str, method: &str) -> Result<MethodDescriptor, Unusable> {
        let service = self.service(service)?;
        let found = service.methods().find(|known| known.name() == method);
        found.ok_or_else(|| {
            let known: Vec<String> = service
                .methods()
                .map(|known| known.name().to_owned())
                .collect();
            let (service, hint) = (service.full_name(), suggest(method, &known));
            let reason = format!("the service `{service}` has no method `{method}`; {hint}");
            Unusable::at(FaultyPart::Method, reason)
        })
    }

    fn service(&self, name: &str) -> Result<ServiceDescriptor, Unusable> {
        let own: Vec<ServiceDescriptor> = self
            .pool
            .get_file_by_name(&self.name)
            .map(|file| file.services().collect())
            .unwrap_or_default();
        let named = own
            .iter()
            .find(|known| known.full_name() == name)
            .or_else(|| own.iter().find(|known| known.name() == name));
        if let Some(service) = named {
            return Ok(service.clone());
        }
        let known: Vec<String> = own.iter().map(|known| known.name().to_owned()).collect();
        let reason = format!("it has no service `{name}`; {}", suggest(name, &known));
        Err(Unusable::at(FaultyPart::Service, reason))
    }
}

/// A text that is no proto file may be anything that this process can read and the deploying client can't. So only the
/// place of the error and what should be there are shown.
fn unquoted(name: &str, error: &str) -> String {
    let quotes = (error.find('\''), error.rfind('\''));
    let shown = match (error.split_once("found "), quotes) {
        (Some((expected, _)), _) => format!("{expected}found something else"),
        (None, (Some(from), Some(to))) => format!("{}'...'{}", &error[..from], &error[to + 1..]),
        (None, _) => error.to_owned(),
    };
    // Errors at the end of a file have no place.
    let place = if shown.starts_with(name) {
        String::new()
    } else {
        format!("{name}: ")
    };
    place.chars().chain(shown.chars()).take(500).collect()
}

fn explain(error: &str) -> String {
    let error: String = error.chars().take(500).collect();
    if error.contains("import '") && error.contains("not found") {
        format!(
            "{error}; known are google/protobuf, the options of google/api, and files below the one \
             that imports are relative to"
        )
    } else {
        error
    }
}

fn suggest(wanted: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "it has none at all".to_owned();
    }
    let likeness = |other: &&String| {
        let score = strsim::jaro_winkler(&wanted.to_lowercase(), &other.to_lowercase());
        (score * 1000.0) as u32
    };
    let best = known.iter().max_by_key(likeness);
    match best.filter(|best| f64::from(likeness(best)) >= LIKENESS_MIN * 1000.0) {
        Some(best) => format!("did you mean `{best}`?"),
        None => {
            let shown: Vec<_> = known
                .iter()
                .take(10)
                .map(|name| format!("`{name}`"))
                .collect();
            format!("there is {}", shown.join(", "))
        }
    }
}

impl FileResolver for Sources {
    fn resolve_path(&self, path: &std::path::Path) -> Option<String> {
        (path.to_str() == Some(&self.name)).then(|| self.name.clone())
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.files.get(name) {
            Some(text) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = r#"
        syntax = "proto3";
        package acme.v1;
        import "google/api/annotations.proto";
        import "google/api/client.proto";
        import "google/api/field_behavior.proto";
        import "google/api/resource.proto";
        import "google/protobuf/empty.proto";
        import "google/protobuf/timestamp.proto";
        service UserService {
          option (google.api.default_host) = "users.example.org";
          rpc AddUser(User) returns (google.protobuf.Empty) {
            option (google.api.http) = { post: "/api/v1/users" body: "*" };
            option (google.api.method_signature) = "name";
          }
          rpc ListUsers(User) returns (stream User);
        }
        message User {
          option (google.api.resource) = { type: "acme/User" pattern: "users/{user}" };
          string name = 1 [(google.api.field_behavior) = REQUIRED];
          google.protobuf.Timestamp since = 2;
        }"#;

    fn compile(uri: &str, text: &str) -> Result<Proto, String> {
        Proto::compile(Sources::read(uri, text, |_| None)?)
    }

    fn refused(text: &str) -> String {
        match compile("file://a/users.proto", text) {
            Ok(_) => panic!("it compiled"),
            Err(error) => error,
        }
    }

    #[test]
    fn a_method_is_found_with_and_without_the_package() {
        let proto = compile("http://h/users.proto?v=1", USERS).unwrap();
        for service in ["UserService", "acme.v1.UserService"] {
            let method = proto.method(service, "ListUsers").unwrap();
            assert_eq!(method.full_name(), "acme.v1.UserService.ListUsers");
            assert!(method.is_server_streaming() && !method.is_client_streaming());
        }
        for (service, method, expected) in [
            ("userService", "AddUser", "did you mean `UserService`?"),
            (
                "v1.UserService",
                "AddUser",
                "has no service `v1.UserService`",
            ),
            ("UserService", "addUser", "did you mean `AddUser`?"),
            ("UserService", "Zap", "there is `AddUser`, `ListUsers`"),
        ] {
            let error = proto.method(service, method).unwrap_err().reason;
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn compile_errors_include_their_location() {
        let error =
            refused("syntax = \"proto3\";\nservice S { rpc M(Missing) returns (Missing); }");
        assert!(
            error.contains("users.proto:2:") && error.contains("Missing"),
            "{error}"
        );
        let error = refused("syntax = \"proto3\";\nimport \"other.proto\";");
        assert!(
            error.contains("other.proto") && error.contains("known are google/protobuf"),
            "{error}"
        );
        assert!(refused("openapi: 3.0.3").contains("users.proto:1:"));
        assert!(refused("import \"users.proto\";").contains("cycle"));
    }

    #[test]
    fn what_is_no_proto_file_is_not_quoted() {
        for text in [
            "hunter2secret",
            "syntax = 'hunter2secret",
            "syntax = 'hunter2secret';",
            "syntax = \"proto3\";\nmessage A { 'hunter2secret' }",
            "KEY=hunter2secret",
            "\u{7}hunter2secret",
            "a 0xhunter2secret",
        ] {
            let error = refused(text);
            assert!(error.contains("users.proto:"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[a-z{}\\[\\]<>()=;\"'/* \n0-9.]{0,200}") {
            let _ = compile("a.proto", &text);
            let _ = compile("a.proto", &format!("syntax = \"proto3\";\nmessage A {{ {text} }}"));
        }
    }
}
