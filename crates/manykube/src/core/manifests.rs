//! The user's own objects: a copy of them lies in the profile, and beside it one of what was applied.

use anyhow::Result;
use bootstrap::api;
use model::Home;
use std::time::Duration;

fn text(home: &Home, profile: &str) -> String {
    std::fs::read_to_string(home.profile_manifests(profile)).unwrap_or_default()
}

fn done(home: &Home, profile: &str) -> std::path::PathBuf {
    home.profile_manifests(profile).with_extension("applied")
}

pub fn applied(home: &Home, profile: &str) -> bool {
    let wanted = text(home, profile);
    wanted.is_empty() || std::fs::read_to_string(done(home, profile)).is_ok_and(|done| done == wanted)
}

pub async fn apply(home: &Home, profile: &str, client: &kube::Client, patience: Duration) -> Result<()> {
    let text = text(home, profile);
    let objects = bootstrap::manifest::objects(&text)?;
    api::serving(client, patience).await?;
    api::apply_foreign(client, &objects, patience).await?;
    Ok(base::atomic::replace(&done(home, profile), text.as_bytes(), 0o600)?)
}
