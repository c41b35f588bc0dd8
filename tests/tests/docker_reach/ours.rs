//! What is this host's in a home that also knows of clusters elsewhere.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use system_tests::Lab;

const DRIVER_MISMATCH: i32 = 81;
pub const GUEST_DELETION: i32 = 80;

pub struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn make(path: PathBuf, text: String) -> File {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("make a directory");
        std::fs::write(&path, &text).expect("write a file");
        File { path, text }
    }

    pub fn is_as_it_was(&self) -> bool {
        std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }
}

/// That of this home's own clusters.
pub fn authority(lab: &Lab) -> File {
    File::make(lab.home().join("ca.key"), "the key of this home".into());
    File::make(lab.home().join("ca.crt"), "the certificate of this home".into())
}

/// One of this host, and one of another engine: neither is the business of the engine that is asked.
pub fn clusters(lab: &Lab) -> Vec<File> {
    let profile = |name: &str| lab.home().join("profiles").join(name);
    for file in ["config.json", "client.key", "ca.crt"] {
        let found = std::fs::metadata(profile("minikube").join(file)).expect("what came back");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{file}");
    }
    let known = std::fs::read_to_string(profile("minikube").join("config.json")).expect("a profile");
    let of = |name: &str| {
        let mut config: serde_json::Value = serde_json::from_str(&known).expect("JSON");
        config["Name"] = name.into();
        config.to_string()
    };
    let mark = r#"{"engine":"another","address":{"host":"ssh://another","certs":null}}"#;
    let made = vec![
        File::make(profile("mine").join("config.json"), of("mine")),
        File::make(profile("mine").join("pki/sa.key"), "what signs tokens".into()),
        File::make(profile("others").join("elsewhere"), mark.into()),
        File::make(profile("others").join("config.json"), of("others")),
    ];
    for command in ["start", "delete"] {
        let refused = lab.manykube(&[command, "-p", "mine"]).exit(DRIVER_MISMATCH);
        assert!(refused.stderr.contains("one of this host"), "{}", refused.stderr);
    }
    lab.manykube(&["status"]).ok();
    assert!(made.iter().all(File::is_as_it_was));
    made
}
