//! Which entries of a kubeconfig are this home's. All others are left as they are.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::document::find;

/// Every entry of ours says so; minikube's own say `minikube.sigs.k8s.io`, as ours did before.
pub const PROVIDER: &str = "manykube";

/// How entries of this home are known.
#[derive(Debug, Clone, Default)]
pub struct Ours {
    /// Its directory, by all names that it has.
    pub homes: Vec<PathBuf>,
    /// Base64 of the certificates of the profile: what entries have that name no files.
    pub certificates: Vec<String>,
}

/// Which of the three entries of a name are this home's; `None` where there is no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owned {
    pub cluster: Option<bool>,
    pub context: Option<bool>,
    pub user: Option<bool>,
}

impl Owned {
    pub fn is_anothers(self) -> bool {
        [self.cluster, self.context, self.user].contains(&Some(false))
    }
}

impl Ours {
    pub fn look(&self, doc: &Value, name: &str) -> Owned {
        let (cluster, context) = (find(doc, "clusters", name), find(doc, "contexts", name));
        let user = find(doc, "users", name);
        let cluster = cluster.map(|item| {
            let body = &item["cluster"];
            self.is_marked(body) || self.has(body, "certificate-authority")
        });
        let certified = user.map(|item| self.has(&item["user"], "client-certificate"));
        let context = context.map(|item| {
            let body = &item["context"];
            let leads_to_ours = body["cluster"] == name && body["user"] == name;
            let known = cluster.or(certified) == Some(true);
            self.is_marked(body) || (leads_to_ours && known)
        });
        // It has no mark: it is of those who name it.
        let user = certified.map(|own| own || cluster.or(context) == Some(true));
        Owned { cluster, context, user }
    }

    fn is_marked(&self, body: &Value) -> bool {
        let extensions = body["extensions"].as_array().into_iter().flatten();
        extensions.map(|e| &e["extension"]).any(|extension| {
            let home = extension["home"].as_str().map(Path::new);
            extension["provider"] == PROVIDER && home.is_some_and(|home| self.homes.iter().any(|h| h == home))
        })
    }

    /// Earlier versions, and minikube where we go on with its home, left no other mark than these.
    fn has(&self, body: &Value, key: &str) -> bool {
        let file = body[key].as_str().map(Path::new);
        let data = body[format!("{key}-data")].as_str();
        file.is_some_and(|file| self.homes.iter().any(|home| file.starts_with(home)))
            || data.is_some_and(|data| self.certificates.iter().any(|c| c == data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubeconfig::{document, yaml};

    fn ours() -> Ours {
        Ours { homes: vec!["/h".into()], certificates: vec!["Y2E=".into(), "Yw==".into()] }
    }

    fn doc(ca: &str, extension: &str, cert: &str) -> Value {
        let text = format!(
            "clusters: [{{name: demo, cluster: {{{ca}, extensions: [{{name: cluster_info, extension: {{{extension}}}}}]}}}}]
contexts: [{{name: demo, context: {{cluster: demo, user: demo, extensions: [{{name: context_info, extension: {{{extension}}}}}]}}}}]
users: [{{name: demo, user: {{{cert}}}}}]"
        );
        yaml::parse(&text).unwrap()
    }

    #[test]
    fn whose_they_are() {
        let minikubes = "provider: minikube.sigs.k8s.io";
        let all = |own| Owned { cluster: Some(own), context: Some(own), user: Some(own) };
        for (ca, extension, cert, own) in [
            (
                "certificate-authority: /h/ca.crt",
                "provider: manykube, home: /h",
                "client-certificate: /h/c",
                true,
            ),
            ("certificate-authority-data: bG9zdA==", "provider: manykube, home: /h", "token: t", true),
            ("certificate-authority: /h/ca.crt", minikubes, "client-certificate: /h/c", true),
            ("certificate-authority-data: Y2E=", minikubes, "client-certificate-data: Yw==", true),
            ("certificate-authority: /hh/ca.crt", minikubes, "client-certificate: /hh/c", false),
            (
                "certificate-authority: /o/ca.crt",
                "provider: manykube, home: /o",
                "client-certificate: /o/c",
                false,
            ),
            ("certificate-authority-data: eA==", "provider: manykube", "token: t", false),
            ("server: https://prod", "provider: x", "token: t", false),
        ] {
            let doc = doc(ca, extension, cert);
            assert_eq!(ours().look(&doc, "demo"), all(own), "{ca} {extension} {cert}");
            assert_eq!(ours().look(&doc, "demo").is_anothers(), !own);
        }
        let none = ours().look(&doc("server: x", "provider: x", "token: t"), "other");
        assert_eq!(none, Owned { cluster: None, context: None, user: None });
        assert!(!none.is_anothers());
    }

    /// `delete -p prod` where there is no such profile.
    #[test]
    fn what_others_wrote_is_not_removed() {
        for (ca, extension, cert) in [
            ("server: https://prod", "provider: x", "token: t"),
            ("certificate-authority: /home/u/.minikube/ca.crt", "provider: minikube.sigs.k8s.io", "token: t"),
        ] {
            let mut theirs = doc(ca, extension, cert);
            theirs["current-context"] = "demo".into();
            let before = theirs.clone();
            assert!(!document::remove(&mut theirs, "demo", &ours()));
            assert_eq!(theirs, before);
        }
        // A context of the user's own that took the name, and a cluster of ours.
        let mut mixed = doc("certificate-authority: /h/ca.crt", "provider: x", "token: t");
        mixed["contexts"][0]["context"]["cluster"] = "prod".into();
        assert_eq!(ours().look(&mixed, "demo").context, Some(false));
        assert!(document::remove(&mut mixed, "demo", &ours()));
        assert_eq!(mixed["contexts"].as_array().unwrap().len(), 1);
        assert!(mixed["clusters"].as_array().unwrap().is_empty());
    }
}
