//! Names of images, as people write them and as containerd keeps them.

const DEFAULT_HOST: &str = "docker.io";
const DEFAULT_PATH: &str = "library/";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of an image")]
pub struct BadReference(pub String);

/// The full name: `app` is `docker.io/library/app:latest`, as Docker and the kubelet read it.
pub fn normalise(text: &str) -> Result<String, BadReference> {
    let bad = || BadReference(text.to_owned());
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    if digest.is_some_and(|d| !is_digest(d)) {
        return Err(bad());
    }
    let (path, tag) = match name.rsplit_once(':') {
        // A colon before the last slash is that of a port.
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let (host, path) = match path.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest.to_owned()),
        Some(_) => (DEFAULT_HOST, path.to_owned()),
        None => (DEFAULT_HOST, format!("{DEFAULT_PATH}{path}")),
    };
    let tag_is_good = |t: &str| {
        let first = t.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        first && t.len() <= 128 && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    let plain = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    let host_is_good = plain(host.bytes().next())
        && plain(host.bytes().last())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:".contains(&b));
    if !host_is_good || !path.split('/').all(part_is_good) || !tag.is_none_or(tag_is_good) {
        return Err(bad());
    }
    Ok(match (tag, digest) {
        (Some(tag), Some(digest)) => format!("{host}/{path}:{tag}@{digest}"),
        (None, Some(digest)) => format!("{host}/{path}@{digest}"),
        (tag, None) => format!("{host}/{path}:{}", tag.unwrap_or("latest")),
    })
}

fn part_is_good(part: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    edge(part.bytes().next())
        && edge(part.bytes().last())
        && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The name without its tag or digest, and the tag.
pub fn parts(name: &str) -> (&str, Option<&str>) {
    let name = name.split('@').next().unwrap_or(name);
    match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    }
}

/// Is this a name that a person gave? containerd and Docker keep aliases of their own.
pub fn familiar(name: &str) -> bool {
    !name.starts_with("sha256:") && !name.starts_with("moby-dangling")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_dockers() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let cases = [
            ("app", "docker.io/library/app:latest".to_owned()),
            ("app:v2", "docker.io/library/app:v2".to_owned()),
            ("me/app", "docker.io/me/app:latest".to_owned()),
            ("localhost/app", "localhost/app:latest".to_owned()),
            ("localhost:5000/app:1", "localhost:5000/app:1".to_owned()),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10".to_owned()),
            (&*format!("app@{digest}"), format!("docker.io/library/app@{digest}")),
        ];
        for (text, want) in cases {
            assert_eq!(normalise(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_name() {
        for bad in ["", ":", "App", "a//b", "a:", "a:b c", "a@sha256:1", "-a", "a/", "../x", "a:-b", "x\ny"] {
            assert_eq!(normalise(bad), Err(BadReference(bad.to_owned())), "{bad:?}");
        }
    }

    #[test]
    fn the_parts_of_a_name() {
        assert_eq!(parts("localhost:5000/a:1"), ("localhost:5000/a", Some("1")));
        assert_eq!(parts("localhost:5000/a"), ("localhost:5000/a", None));
        assert_eq!(parts("a.b/c@sha256:00"), ("a.b/c", None));
    }
}
