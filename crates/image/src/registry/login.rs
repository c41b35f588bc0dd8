//! Logins to registries, where docker keeps them: `docker login` writes `~/.docker/config.json`, or has a helper keep them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Reference, RegistryError};

/// The key of Docker's own registry, for reasons of its history.
const HUB: &str = "https://index.docker.io/v1/";
const HUB_NAMES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
/// What helpers call the user of a token.
const TOKEN_USER: &str = "<token>";

/// No `Debug`: it would be in a log one day.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    Password {
        user: String,
        password: String,
    },
    /// What some registries give out instead of a password. Engines know what to do with it.
    Token(String),
    /// There is one, but it cannot be had. Who that makes us, in the words of an error, with the reason.
    Unreadable(String),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Config {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    identitytoken: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    username: String,
    secret: String,
}

impl Login {
    /// The one for this registry. A file or a helper that is of no use is told when the registry refuses us: most
    /// images are given to everybody.
    pub async fn to(reference: &Reference) -> Option<Login> {
        let host = reference.host().to_owned();
        let found = tokio::task::spawn_blocking(move || find(&host).context("the login cannot be read"));
        match found.await {
            Ok(Ok(login)) => login,
            Ok(Err(e)) => {
                tracing::warn!("{e:#}");
                Some(Login::Unreadable(format!("those who are not logged in ({e:#})")))
            }
            Err(_) => None,
        }
    }

    /// Who was refused.
    pub fn user(&self) -> &str {
        match self {
            Login::Password { user, .. } => user,
            Login::Token(_) => "the owner of a token",
            Login::Unreadable(who) => who,
        }
    }
}

/// Whom a registry has refused, in the error that says so.
pub fn name_user(error: anyhow::Error, login: Option<&Login>) -> anyhow::Error {
    match error.downcast::<RegistryError>() {
        Ok(RegistryError::Denied { host, .. }) => {
            RegistryError::Denied { host, user: login.map(|l| l.user().to_owned()) }.into()
        }
        Ok(other) => other.into(),
        Err(other) => other,
    }
}

fn file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let dir = set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")));
    dir.map(|dir| dir.join("config.json"))
}

fn find(host: &str) -> Result<Option<Login>> {
    let Some(file) = file().filter(|file| file.is_file()) else { return Ok(None) };
    let text = fs_err::read(&file)?;
    let config: Config = serde_json::from_slice(&text).with_context(|| format!("read {}", file.display()))?;
    match config.helper(host) {
        Some(helper) => ask(helper, host),
        None => config.login(host),
    }
}

/// Keys are hosts, or addresses of them.
fn is_of(key: &str, host: &str) -> bool {
    let bare = key.trim_start_matches("https://").trim_start_matches("http://");
    let bare = bare.split('/').next().unwrap_or(bare);
    bare == host || HUB_NAMES.contains(&bare) && HUB_NAMES.contains(&host)
}

impl Config {
    fn helper(&self, host: &str) -> Option<&str> {
        let own = self.cred_helpers.iter().find(|(key, _)| is_of(key, host)).map(|(_, helper)| helper);
        own.or(Some(&self.creds_store)).map(String::as_str).filter(|helper| !helper.is_empty())
    }

    fn login(&self, host: &str) -> Result<Option<Login>> {
        let Some((key, entry)) = self.auths.iter().find(|(key, _)| is_of(key, host)) else { return Ok(None) };
        if !entry.identitytoken.is_empty() {
            return Ok(Some(Login::Token(entry.identitytoken.clone())));
        }
        if entry.auth.is_empty() {
            return Ok(None);
        }
        let decode = || {
            let text = String::from_utf8(STANDARD.decode(entry.auth.trim()).ok()?).ok()?;
            let (user, password) = text.split_once(':')?;
            // Old clients have filled it up.
            let password = password.trim_end_matches('\0').to_owned();
            Some(Login::Password { user: user.to_owned(), password })
        };
        decode()
            .map(Some)
            .with_context(|| format!("the login for {key} in docker's config.json is no user and password"))
    }
}

/// A program by the side of docker's, which keeps secrets where the system does.
fn ask(helper: &str, host: &str) -> Result<Option<Login>> {
    let program = format!("docker-credential-{helper}");
    let mut command = Command::new(&program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("run {program}"))?;
    let key = if HUB_NAMES.contains(&host) { HUB } else { host };
    // One that ends without reading says why below.
    drop(child.stdin.take().map(|mut input| input.write_all(key.as_bytes())));
    let output = child.wait_with_output().with_context(|| format!("wait for {program}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        if said.contains("credentials not found") {
            return Ok(None);
        }
        bail!("{program}: {} {}", said.trim(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let helped: Helped =
        serde_json::from_str(&said).with_context(|| format!("what {program} says is no login"))?;
    Ok(Some(match helped {
        Helped { username, secret } if username == TOKEN_USER => Login::Token(secret),
        Helped { username, secret } => Login::Password { user: username, password: secret },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        serde_json::from_str(text).expect("a configuration")
    }

    fn user(config: &Config, host: &str) -> Option<(String, String)> {
        match config.login(host).ok()?? {
            Login::Password { user, password } => Some((user, password)),
            Login::Token(token) => Some((TOKEN_USER.to_owned(), token)),
            Login::Unreadable(_) => None,
        }
    }

    #[test]
    fn what_docker_login_writes() {
        // u:p:w, u:p filled up, and two that are none.
        let config = config(
            r#"{ "auths": { "r.example:5000": {"auth": "dTpwOnc="}, "https://index.docker.io/v1/": {"auth": "dTpwAAA="},
                 "https://old.example/v1/": {"auth": "dTpw"}, "t.example": {"auth": "dTo=", "identitytoken": "x"},
                 "kept.example": {}, "bad.example": {"auth": "%"} }, "HttpHeaders": {} }"#,
        );
        let pair = |u: &str, p: &str| Some((u.to_owned(), p.to_owned()));
        assert_eq!(user(&config, "r.example:5000"), pair("u", "p:w"));
        assert_eq!(user(&config, "docker.io"), pair("u", "p"));
        assert_eq!(user(&config, "old.example"), pair("u", "p"));
        assert_eq!(user(&config, "t.example"), pair(TOKEN_USER, "x"));
        assert_eq!(user(&config, "r.example"), None, "another port is another registry");
        assert!(config.login("kept.example").is_ok_and(|l| l.is_none()));
        assert!(config.login("bad.example").is_err());
    }

    #[test]
    fn helpers_of_one_registry_and_of_all() {
        let some = config(r#"{ "credHelpers": { "a.example": "one" }, "credsStore": "all" }"#);
        assert_eq!((some.helper("a.example"), some.helper("b.example")), (Some("one"), Some("all")));
        let none = config(r#"{ "credHelpers": { "a.example": "one" } }"#);
        assert_eq!(none.helper("b.example"), None);
    }
}
