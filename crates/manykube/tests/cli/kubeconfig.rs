//! What others wrote to the kubeconfig stays, and the default name is not another tool's.

use std::os::unix::process::CommandExt as _;

use super::home::{CONFIG, Home, Run};

const THEIRS: &str = "apiVersion: v1
clusters:
- cluster:
    server: https://prod.example:6443
  name: prod
contexts:
- context:
    cluster: prod
    user: prod
  name: prod
current-context: prod
kind: Config
users:
- name: prod
  user:
    token: secret
";

/// As the real minikube writes it, into the home that is its own.
const MINIKUBES: &str = "apiVersion: v1
clusters:
- cluster:
    certificate-authority: /home/u/.minikube/ca.crt
    extensions:
    - extension:
        provider: minikube.sigs.k8s.io
      name: cluster_info
    server: https://192.168.49.2:8443
  name: prod
contexts:
- context:
    cluster: prod
    extensions:
    - extension:
        provider: minikube.sigs.k8s.io
      name: context_info
    user: prod
  name: prod
current-context: prod
kind: Config
users:
- name: prod
  user:
    client-certificate: /home/u/.minikube/profiles/prod/client.crt
    client-key: /home/u/.minikube/profiles/prod/client.key
";

#[test]
fn entries_of_others_are_neither_taken_nor_removed() {
    for text in [THEIRS, MINIKUBES] {
        let home = Home::new();
        let file = home.dir().join(".kube/config");
        std::fs::create_dir_all(home.dir().join(".kube")).unwrap();
        std::fs::write(&file, text).unwrap();
        let refused = home.run("start -p prod");
        refused.expect(38, "HOST_KUBECONFIG_UPDATE").expect(38, &file.display().to_string());
        refused.expect(38, "\"prod\"").expect(38, "another name with -p");
        assert!(!home.path().join("profiles").exists(), "nothing was made");
        home.run("delete -p prod").expect(0, "");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn entries_of_a_profile_that_is_gone_are_removed() {
    let home = Home::new();
    let root = home.path();
    let ours = MINIKUBES.replace("/home/u/.minikube", &root.display().to_string());
    let file = home.dir().join(".kube/config");
    std::fs::create_dir_all(home.dir().join(".kube")).unwrap();
    std::fs::write(&file, ours).unwrap();
    home.run("delete -p prod").expect(0, "");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("prod"));
}

#[test]
fn the_default_cluster_is_called_like_the_program() {
    let home = Home::new();
    home.run("profile").expect(0, "* manykube\n");
    let minikube = home.command("profile").arg0("/usr/bin/minikube").output().unwrap();
    Run(minikube, "minikube profile".into()).expect(0, "* minikube\n");
    let named = home.command("profile").env("MANYKUBE_PROFILE", "dev").output().unwrap();
    Run(named, "profile".into()).expect(0, "* dev\n");
    // Earlier versions called it minikube under either name.
    let dir = home.path().join("profiles/minikube");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.json"), CONFIG.replace("\"demo\"", "\"minikube\"")).unwrap();
    home.run("status").expect(85, "\"minikube\" of this home needs '-p minikube'");
    assert_eq!(home.run("status -p minikube").stderr(), "");
    home.run("profile minikube").expect(0, "successfully set to minikube");
    assert_eq!(home.run("status").stderr(), "");
}
