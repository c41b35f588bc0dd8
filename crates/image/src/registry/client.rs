//! How a registry is spoken to, and what its answers mean.

use std::time::Duration;

use oci_client::Client;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{DigestError, OciDistributionError as E, OciErrorCode};
use oci_client::secrets::RegistryAuth;

use super::{Login, Reference, RegistryError};

const CONNECT: Duration = Duration::from_secs(10);
/// Between two pieces of an answer.
const SILENCE: Duration = Duration::from_secs(60);

/// `plain` is HTTP, also to other machines.
pub fn client(reference: &Reference, plain: bool) -> Result<Client, RegistryError> {
    // Of all that is linked, ring is the one that may do it; another part may have said so already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let local = reference.is_local();
    let config = ClientConfig {
        protocol: if plain || local { ClientProtocol::Http } else { ClientProtocol::Https },
        use_monolithic_push: true,
        connect_timeout: Some(CONNECT),
        read_timeout: Some(SILENCE),
        user_agent: concat!("manykube/", env!("CARGO_PKG_VERSION")),
        // No proxy reaches this machine's own registry: one that is never used takes the place of the environment's.
        http_proxy: local.then(|| "http://127.0.0.1".to_owned()),
        // The star stands for names alone.
        no_proxy: local.then(|| "*,127.0.0.0/8,::1".to_owned()),
        ..ClientConfig::default()
    };
    Client::try_from(config).map_err(|e| failed(reference, e))
}

/// How this client can show it.
pub fn auth(reference: &Reference, login: Option<&Login>) -> RegistryAuth {
    match login {
        Some(Login::Password { user, password }) => RegistryAuth::Basic(user.clone(), password.clone()),
        Some(Login::Token(_)) => {
            let host = reference.host();
            tracing::warn!(
                "the login for {host} is a token, which only an engine can use: use --driver=docker"
            );
            RegistryAuth::Anonymous
        }
        Some(Login::Unreadable(_)) | None => RegistryAuth::Anonymous,
    }
}

pub fn failed(reference: &Reference, error: E) -> RegistryError {
    let host = reference.host().to_owned();
    match error {
        E::RequestError(e) => RegistryError::Unreachable { host, why: root(&e) },
        E::ImageManifestNotFoundError(_) => RegistryError::Missing(host),
        E::UnauthorizedError { .. } | E::AuthenticationFailure(_) => {
            RegistryError::Denied { host, user: None }
        }
        E::RegistryError { envelope, .. } => {
            let has = |codes: &[OciErrorCode]| envelope.errors.iter().any(|e| codes.contains(&e.code));
            if has(&[OciErrorCode::ManifestUnknown, OciErrorCode::NameUnknown, OciErrorCode::NotFound]) {
                return RegistryError::Missing(host);
            }
            if has(&[OciErrorCode::Unauthorized, OciErrorCode::Denied]) {
                return RegistryError::Denied { host, user: None };
            }
            let said = envelope.errors.iter().map(|e| e.message.clone()).collect::<Vec<_>>();
            RegistryError::Registry { host, why: said.join("; ") }
        }
        E::DigestError(DigestError::VerificationError { expected, actual }) => {
            RegistryError::Digest { what: "what came".to_owned(), wanted: expected, found: actual }
        }
        E::ServerError { code: 401 | 403, .. } => RegistryError::Denied { host, user: None },
        E::ServerError { code: 404, .. } => RegistryError::Missing(host),
        E::ServerError { code, message, .. } => {
            RegistryError::Registry { host, why: format!("HTTP {code} {}", one_line(&message)) }
        }
        other => RegistryError::Registry { host, why: one_line(&other.to_string()) },
    }
}

/// The cause is what tells.
pub fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    one_line(&cause.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}
