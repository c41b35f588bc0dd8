//! Can an image be pulled? Asked of its registry, before anything depends on it: the manifest of
//! the image, with an anonymous token where the registry wants one.

use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;

use crate::api::{ApiError, why};

const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// An image's full name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub host: String,
    name: String,
    /// A tag, or a digest.
    version: String,
}

impl Reference {
    /// `None` unless the name says its registry and its version.
    pub fn parse(text: &str) -> Option<Reference> {
        let (host, rest) = text.split_once('/')?;
        let named = host.contains(['.', ':']) || host == "localhost";
        let (name, version) = match rest.split_once('@') {
            Some((name, digest)) => (name.split(':').next()?, digest),
            None => rest.split_once(':')?,
        };
        let plain = |s: &str, more: &str| {
            !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || more.as_bytes().contains(&b))
        };
        let good = named && plain(host, ".-:") && plain(name, "/._-") && plain(version, "._:-");
        good.then(|| Reference { host: host.into(), name: name.into(), version: version.into() })
    }

    /// A loopback address of this machine is another machine in each node.
    pub fn is_local(&self) -> bool {
        let machine = self.host.split(':').next().unwrap_or_default();
        machine == "localhost" || machine.starts_with("127.")
    }

    fn url(&self) -> String {
        // What does not leave the machine is not encrypted, as in containerd.
        let scheme = if self.is_local() { "http" } else { "https" };
        // The one registry whose name is not where it answers.
        let place = if self.host == "docker.io" { "registry-1." } else { "" };
        format!("{scheme}://{place}{}", self.host)
    }
}

/// The error says why not.
pub async fn can_pull(image: &Reference, deadline: Duration) -> Result<(), ApiError> {
    let tried = || format!("ask {} for {}:{}", image.host, image.name, image.version);
    match tokio::time::timeout(deadline, ask(image)).await {
        Ok(answer) => answer.map_err(|why| ApiError::new(tried(), why)),
        Err(_) => Err(ApiError::new(tried(), format!("no answer within {} s", deadline.as_secs()))),
    }
}

async fn ask(image: &Reference) -> Result<(), String> {
    let path = format!("/v2/{}/manifests/{}", image.name, image.version);
    let mut answer = get(&image.url(), &path, None).await?;
    if answer.status() == 401
        && let Some(challenge) = answer.headers().get(WWW_AUTHENTICATE).and_then(|h| h.to_str().ok())
        && let Some((realm, query)) = token_place(challenge)
    {
        let token =
            get(&realm, &query, None).await?.into_body().collect_bytes().await.map_err(|e| why(&e))?;
        let token: Value = serde_json::from_slice(&token).map_err(|e| format!("read its token: {e}"))?;
        let token = token["token"].as_str().or(token["access_token"].as_str()).unwrap_or_default();
        answer = get(&image.url(), &path, Some(token)).await?;
    }
    match answer.status().as_u16() {
        200 => Ok(()),
        404 => Err("there is no such image".to_owned()),
        code => Err(format!("HTTP {code}")),
    }
}

/// Where a token is to be had, from the registry's `Bearer realm="…",service="…",scope="…"`.
fn token_place(challenge: &str) -> Option<(String, String)> {
    let parts = challenge.strip_prefix("Bearer ")?;
    let value = |key: &str| {
        let rest = &parts[parts.find(&format!("{key}=\""))? + key.len() + 2..];
        rest.split('"').next()
    };
    let realm = value("realm")?;
    let (scheme, rest) = realm.split_once("://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let query: Vec<String> = ["service", "scope"]
        .iter()
        .filter_map(|key| Some(format!("{key}={}", value(key)?.replace(' ', "%20"))))
        .collect();
    Some((format!("{scheme}://{host}"), format!("/{path}?{}", query.join("&"))))
}

async fn get(url: &str, path: &str, token: Option<&str>) -> Result<http::Response<Body>, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config::new(url.parse().map_err(|e| format!("{url}: {e}"))?);
    let client = Client::try_from(config).map_err(|e| why(&e))?;
    let mut request = Request::get(path).header(ACCEPT, MANIFESTS);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).map_err(|e| e.to_string())?;
    client.send(request).await.map_err(|e| why(&e))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn names_that_say_where_and_what() {
        let r = Reference::parse("registry.example:5000/a/kube-vip:v1.0.3").unwrap();
        assert_eq!((&*r.host, &*r.name, &*r.version), ("registry.example:5000", "a/kube-vip", "v1.0.3"));
        assert_eq!(Reference::parse("r.example/a:v1@sha256:ab").unwrap().version, "sha256:ab");
        for bad in [
            "",
            "kube-vip",
            "kube-vip:v1",
            "a/kube-vip:v1",
            "r.example/a",
            "r.example/:v1",
            "r.example/a b:v1",
        ] {
            assert_eq!(Reference::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_place_of_a_token() {
        let challenge =
            r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a:pull""#;
        let (url, path) = token_place(challenge).unwrap();
        assert_eq!(
            (&*url, &*path),
            ("https://auth.example", "/token?service=r.example&scope=repository:a:pull")
        );
        assert_eq!(token_place("Basic realm=\"x\""), None);
    }

    /// A registry of one image that wants a token.
    fn registry() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut buffer = [0; 4096];
                let length = stream.read(&mut buffer).unwrap();
                let request = String::from_utf8_lossy(&buffer[..length]).to_lowercase();
                let (status, header, body) = if request.starts_with("get /token?service=here&scope=s ") {
                    ("200 OK", String::new(), r#"{"token":"secret"}"#)
                } else if !request.contains("authorization: bearer secret") {
                    let challenge = format!(
                        "Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"here\",scope=\"s\""
                    );
                    ("401 Unauthorized", format!("WWW-Authenticate: {challenge}\r\n"), "")
                } else if request.starts_with("get /v2/kube-vip/manifests/v1 ") {
                    ("200 OK", String::new(), "{}")
                } else {
                    ("404 Not Found", String::new(), "")
                };
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status}\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
        port
    }

    #[tokio::test]
    async fn a_registry_is_asked() {
        let port = registry();
        let ask = |image: &str| Reference::parse(&format!("127.0.0.1:{port}/{image}")).unwrap();
        let limit = Duration::from_secs(20);
        can_pull(&ask("kube-vip:v1"), limit).await.unwrap();
        let error = can_pull(&ask("kube-vip:v2"), limit).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("ask 127.0.0.1:{port} for kube-vip:v2: there is no such image")
        );
    }

    #[tokio::test]
    async fn a_registry_that_is_not_there() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let image = Reference::parse(&format!("127.0.0.1:{port}/kube-vip:v1")).unwrap();
        assert!(can_pull(&image, Duration::from_secs(20)).await.is_err());
    }
}
