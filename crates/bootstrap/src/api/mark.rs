//! The cluster itself remembers that it is set up: one ConfigMap, written when all else is there.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use serde_json::json;

use super::condition::Unmet;
use super::error::{ApiError, call};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "manykube";

pub async fn mark(client: &Client, deadline: Duration) -> Result<(), Unmet> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "data": { "configured": "true" },
    });
    super::apply(client, &[object], deadline).await
}

pub async fn is_marked(client: &Client, deadline: Duration) -> Result<bool, ApiError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    Ok(call("look for our mark", deadline, maps.get_metadata_opt(NAME)).await?.is_some())
}
