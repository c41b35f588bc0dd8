//! Takes objects away again that were applied.

use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::apply::text;
use super::error::{ApiError, call};

/// The last first, so that what needs another goes before it. What is not there is fine.
pub async fn remove(client: &Client, objects: &[Value], deadline: Duration) -> Result<(), ApiError> {
    for object in objects.iter().rev() {
        let what = format!("remove {} {}", text(object, "/kind"), text(object, "/metadata/name"));
        call(what.clone(), deadline, remove_one(client, object)).await?;
    }
    Ok(())
}

async fn remove_one(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let Some(kind) = object.types.as_ref().and_then(|t| GroupVersionKind::try_from(t).ok()) else {
        return Ok(());
    };
    let (resource, capabilities) = match pinned_kind(client, &kind).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        found => found?,
    };
    let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, &resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    };
    match api.delete(&object.name_any(), &DeleteParams::background()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
    }
}
