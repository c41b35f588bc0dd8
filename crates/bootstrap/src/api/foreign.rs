//! Server-side apply of objects that somebody else wrote: any kind, also one that a definition among
//! them makes.

use std::time::Duration;

use futures::future::try_join_all;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::apply::{MANAGER, text};
use super::condition::until;
use super::error::{ApiError, why};

/// What others of the same manifest may need to be there first.
const FIRST: [&str; 2] = ["Namespace", "CustomResourceDefinition"];

/// All at once where none needs another. What is not there yet (a kind, a namespace) is waited for;
/// what the API calls invalid stays so and is an error at once.
pub async fn apply_foreign(client: &Client, objects: &[Value], deadline: Duration) -> Result<(), ApiError> {
    let is_first = |o: &&Value| FIRST.contains(&text(o, "/kind"));
    let (first, others): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(is_first);
    for batch in [first, others] {
        try_join_all(batch.into_iter().map(|object| apply_one(client, object, deadline))).await?;
    }
    Ok(())
}

async fn apply_one(client: &Client, object: &Value, deadline: Duration) -> Result<(), ApiError> {
    let name = format!("apply {} {}", text(object, "/kind"), text(object, "/metadata/name"));
    let verdict = until(&name, deadline, || async {
        match try_one(client, object).await {
            Ok(()) => Ok(Ok(())),
            Err(Failed::ForGood(why)) => Ok(Err(why)),
            Err(Failed::ForNow(why)) => Err(why),
        }
    });
    match verdict.await {
        Ok(verdict) => verdict.map_err(|why| ApiError::new(name, why)),
        Err(unmet) => Err(ApiError::new(name, unmet.last)),
    }
}

enum Failed {
    ForGood(String),
    ForNow(String),
}

async fn try_one(client: &Client, object: &Value) -> Result<(), Failed> {
    let object: DynamicObject =
        serde_json::from_value(object.clone()).map_err(|e| Failed::ForGood(e.to_string()))?;
    let types = object.types.as_ref().ok_or_else(|| Failed::ForGood("it has no kind".to_owned()))?;
    let kind = GroupVersionKind::try_from(types).map_err(|e| Failed::ForGood(e.to_string()))?;
    // Its plural, and whether it lives in a namespace, is for the API to say.
    let (resource, capabilities) = pinned_kind(client, &kind).await.map_err(|e| Failed::ForNow(why(&e)))?;
    let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, &resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    match api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await {
        // One that is on its way out takes all that is put into it along.
        Ok(there) if there.metadata.deletion_timestamp.is_some() => {
            Err(Failed::ForNow("it is still being removed".to_owned()))
        }
        Ok(_) => Ok(()),
        Err(e @ kube::Error::Api(_)) if is_invalid(&e) => Err(Failed::ForGood(why(&e))),
        Err(e) => Err(Failed::ForNow(why(&e))),
    }
}

fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 415 | 422))
}
