//! Completions from the documents of functions: their operations, and the arguments of calls.

use swirl_documents::source::Node;
use swirl_spec::resource::Resources;

use super::offered::{Offered, offered};

/// The operations of the documents that functions of the definition name, and of the one that is being `typed`.
pub fn operations(root: &Node, typed: &str, resources: &dyn Resources) -> Vec<String> {
    let declared = addresses(root).into_iter().map(|(_, address)| address);
    let mut uris: Vec<&str> = Vec::new();
    for address in [typed].into_iter().chain(declared) {
        if let Some((uri, _)) = address.split_once('#')
            && !uris.contains(&uri)
        {
            uris.push(uri);
        }
    }
    let all = uris.into_iter().flat_map(|uri| {
        let operations = read(uri, resources).into_iter();
        operations.map(move |operation| format!("{uri}#{}", operation.name))
    });
    all.collect()
}

/// The operations of the document that a call of DSL 1.0 names.
pub fn operations_of_call(with: &Node, resources: &dyn Resources) -> Vec<String> {
    let uri = with.get("document").and_then(address);
    let operations = uri.map(|uri| read(uri, resources));
    operations
        .into_iter()
        .flatten()
        .map(|operation| operation.name)
        .collect()
}

/// The services of the proto file that a call of DSL 1.0 names, or the methods of the service that it names.
pub fn of_grpc(with: &Node, wanted: Grpc, resources: &dyn Resources) -> Vec<String> {
    let uri = with.get("proto").and_then(address);
    let methods = uri.map(|uri| read(uri, resources)).unwrap_or_default();
    let service = with.get("service").and_then(|service| service.get("name"));
    let service = service.and_then(Node::as_str).unwrap_or_default();
    // Its name may be given with its package.
    let service = service.rsplit('.').next().unwrap_or(service);
    let names = methods.iter().filter_map(|one| one.name.split_once('#'));
    let mut found: Vec<String> = Vec::new();
    for (known, method) in names {
        let name = match wanted {
            Grpc::Service => known,
            Grpc::Method if known == service => method,
            Grpc::Method => continue,
        };
        if found.iter().all(|one| one != name) {
            found.push(name.to_owned());
        }
    }
    found
}

#[derive(Debug, Clone, Copy)]
pub enum Grpc {
    Service,
    Method,
}

/// The address of a resource of DSL 1.0.
fn address(resource: &Node) -> Option<&str> {
    let endpoint = resource.get("endpoint")?;
    endpoint
        .as_str()
        .or_else(|| endpoint.get("uri").and_then(Node::as_str))
}

/// The arguments of a call, which refers to its function by name. In DSL 1.0 it is the `with` of a task that calls an
/// operation.
pub fn arguments(root: &Node, call: &Node, resources: &dyn Resources) -> Vec<String> {
    if let Some(id) = call.get("operationId").and_then(Node::as_str) {
        let uri = call.get("document").and_then(address);
        return uri.map_or_else(Vec::new, |uri| of_operation(uri, id, resources));
    }
    let name = call.get("refName").and_then(Node::as_str);
    let addresses = addresses(root);
    let found = addresses.iter().find(|(known, _)| Some(*known) == name);
    let Some((uri, id)) = found.and_then(|(_, address)| address.split_once('#')) else {
        return Vec::new();
    };
    of_operation(uri, id, resources)
}

fn of_operation(uri: &str, id: &str, resources: &dyn Resources) -> Vec<String> {
    let is_it = |one: &Offered| {
        // The name of a service may be given with its package.
        one.name == id || id.ends_with(&format!(".{}", one.name)) && id.contains('#')
    };
    let operation = read(uri, resources).into_iter().find(is_it);
    operation.map_or_else(Vec::new, |operation| operation.arguments)
}

/// The members that the function which a task of DSL 1.0 calls expects, from its input schema.
pub fn input(root: &Node, task: &Node) -> Option<Vec<String>> {
    let name = task.get("call")?.as_str()?;
    let functions = root.get("use")?.get("functions")?;
    let schema = functions.get(name)?.get("input")?.get("schema")?;
    let members = schema.get("document")?.get("properties")?.members()?;
    Some(
        members
            .iter()
            .map(|member| member.key().to_owned())
            .collect(),
    )
}

/// The functions of the definition with their operations.
fn addresses(root: &Node) -> Vec<(&str, &str)> {
    let functions = root.get("functions").and_then(Node::items);
    let functions = functions.unwrap_or_default().iter();
    let addresses = functions.filter_map(|function| {
        let text = |name| function.get(name).and_then(Node::as_str);
        Some((text("name")?, text("operation")?))
    });
    addresses.collect()
}

fn read(uri: &str, resources: &dyn Resources) -> Vec<Offered> {
    let document = resources.fetch(uri, None);
    document.map_or_else(|_| Vec::new(), |document| offered(uri, &document))
}
