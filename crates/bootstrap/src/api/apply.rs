//! Server-side apply of many objects, all at once where none needs another.

use std::time::Duration;

use futures::future::try_join_all;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::condition::{Unmet, until};
use super::error::why;

/// Who owns the fields.
pub(super) const MANAGER: &str = "manykube";

/// Namespaces first, then everything else in parallel. What a young API server refuses (a
/// namespace or a role that it is still making) is tried again until the deadline.
pub async fn apply(client: &Client, objects: &[Value], deadline: Duration) -> Result<(), Unmet> {
    let (namespaces, others): (Vec<&Value>, Vec<&Value>) =
        objects.iter().partition(|o| o["kind"] == "Namespace");
    for batch in [namespaces, others] {
        try_join_all(batch.into_iter().map(|object| apply_one(client, object, deadline))).await?;
    }
    Ok(())
}

async fn apply_one(client: &Client, object: &Value, deadline: Duration) -> Result<(), Unmet> {
    let name = format!("{} {} applied", text(object, "/kind"), text(object, "/metadata/name"));
    until(name, deadline, || async {
        let object: DynamicObject = serde_json::from_value(object.clone()).map_err(|e| e.to_string())?;
        let api = api(client, &object)?;
        let params = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(&object);
        api.patch(&object.name_any(), &params, &patch).await.map(drop).map_err(|e| why(&e))
    })
    .await
}

/// Nothing we apply needs discovery: the plurals are regular, and a namespace says the scope.
fn api(client: &Client, object: &DynamicObject) -> Result<Api<DynamicObject>, String> {
    let types = object.types.as_ref().ok_or("an object without kind")?;
    let kind = GroupVersionKind::try_from(types).map_err(|e| e.to_string())?;
    let resource = ApiResource::from_gvk(&kind);
    Ok(match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("?")
}
