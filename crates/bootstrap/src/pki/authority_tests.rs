use model::Cluster;

use super::*;
use crate::fixture;
use crate::pki::{Identity, Pki, ensure, look};

fn home() -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path(), None);
    (dir, home)
}

fn named(name: &str) -> Cluster {
    Cluster { name: name.into(), ..fixture::cluster(1, 0) }
}

fn openssl(args: &[&str]) -> bool {
    let made = std::process::Command::new("openssl").args(args).output().unwrap();
    made.status.success()
}

/// As an earlier version left a profile: its authorities lie in the home.
fn move_to_home(home: &Home, profile: &str) {
    for name in ["ca.crt", "ca.key", "proxy-client-ca.crt", "proxy-client-ca.key"] {
        std::fs::rename(home.profile(profile).join(name), home.root().join(name)).unwrap();
    }
}

#[test]
fn each_cluster_has_its_own_however_many_start_at_once() {
    let (_dir, home) = home();
    let started: Vec<Pki> = std::thread::scope(|scope| {
        let start = |i| {
            let home = &home;
            scope.spawn(move || ensure(home, &named(&format!("p{i}")), SystemTime::now()).unwrap())
        };
        let threads: Vec<_> = (0..4).map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (i, one) in started.iter().enumerate() {
        for other in &started[i + 1..] {
            assert!(one.ca != other.ca && one.front_proxy_ca != other.front_proxy_ca);
            assert!(one.etcd_ca != other.etcd_ca);
        }
    }
    assert!(!home.root().join("ca.crt").exists() && !home.root().join("ca.key").exists());
    let at = |path: &str| home.root().join("profiles").join(path).to_str().unwrap().to_owned();
    assert!(openssl(&["verify", "-CAfile", &at("p0/ca.crt"), &at("p0/client.crt")]));
    assert!(!openssl(&["verify", "-CAfile", &at("p1/ca.crt"), &at("p0/client.crt")]));
}

#[test]
fn an_authority_signs_no_other_authority() {
    let (dir, home) = home();
    ensure(&home, &named("demo"), SystemTime::now()).unwrap();
    let cert = dir.path().join("profiles/demo/ca.crt");
    let text =
        std::process::Command::new("openssl").args(["x509", "-noout", "-text", "-in"]).arg(cert).output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.contains("CA:TRUE, pathlen:0"), "{text}");
}

#[test]
fn a_cluster_of_an_earlier_version_goes_on_with_the_homes() {
    let (_dir, home) = home();
    let (cluster, now) = (named("demo"), SystemTime::now());
    let old = ensure(&home, &cluster, now).unwrap();
    move_to_home(&home, "demo");
    assert_eq!(certificate_of(&home, "demo"), home.root().join("ca.crt"));
    let found = look(&home, &cluster, now).unwrap().unwrap();
    assert!(found.stale.is_empty() && found.pki.ca == old.ca, "who looks sees it, too");
    let new = ensure(&home, &cluster, now).unwrap();
    assert!(new.ca == old.ca && new.front_proxy_ca == old.front_proxy_ca && new.leaves == old.leaves);
    assert_eq!(certificate_of(&home, "demo"), home.profile("demo").join("ca.crt"));
    assert!(home.root().join("ca.key").exists(), "others may still need it");
    // A new one does not.
    let fresh = ensure(&home, &named("fresh"), now).unwrap();
    assert!(fresh.ca != old.ca && fresh.front_proxy_ca != old.front_proxy_ca);
}

/// What an earlier version could not use, this one does not replace either.
#[test]
fn a_damaged_authority_of_the_home_is_an_error() {
    let (dir, home) = home();
    let cluster = named("demo");
    ensure(&home, &cluster, SystemTime::now()).unwrap();
    move_to_home(&home, "demo");
    std::fs::write(dir.path().join("ca.crt"), "half").unwrap();
    let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap().to_string();
    assert!(error.ends_with("ca.key is damaged"), "{error}");
    std::fs::remove_file(dir.path().join("ca.crt")).unwrap();
    let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap().to_string();
    assert!(error.ends_with("ca.crt is missing"), "{error}");
}

/// Of a home that has both: one that lost its own does not get the one of others.
#[test]
fn the_homes_is_not_taken_for_what_it_did_not_sign() {
    let (_dir, home) = home();
    let now = SystemTime::now();
    let old = ensure(&home, &named("old"), now).unwrap();
    move_to_home(&home, "old");
    ensure(&home, &named("demo"), now).unwrap();
    for name in ["ca.crt", "ca.key"] {
        std::fs::remove_file(home.profile("demo").join(name)).unwrap();
    }
    assert!(ensure(&home, &named("demo"), now).unwrap().ca != old.ca);
}

#[test]
fn a_damaged_authority_is_never_replaced() {
    let (_dir, home) = home();
    let cluster = named("demo");
    let at = |name: &str| home.profile("demo").join(name);
    ensure(&home, &cluster, SystemTime::now()).unwrap();
    std::fs::write(at("ca.crt"), "half").unwrap();
    let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap().to_string();
    assert!(error.ends_with("ca.key is damaged"), "{error}");
    std::fs::remove_file(at("ca.crt")).unwrap();
    std::fs::write(at("ca.key.tmp"), "half").unwrap();
    std::fs::write(at("ca.crt.tmp"), "half").unwrap();
    let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap().to_string();
    assert!(error.ends_with("ca.crt is missing"), "{error}");
}

#[test]
fn an_authority_with_anothers_key_signs_nothing() {
    let (_dir, home) = home();
    let cluster = named("demo");
    let cert = home.profile("demo").join("ca.crt");
    let made = ensure(&home, &cluster, SystemTime::now()).unwrap();
    let other = issue::authority("minikubeCA", SystemTime::now()).unwrap();
    std::fs::write(&cert, other.cert).unwrap();
    let error = ensure(&home, &cluster, SystemTime::now()).err().unwrap();
    assert!(error.to_string().contains("do not belong together"), "{error}");
    assert!(error.downcast_ref::<Fault>().unwrap().advice.is_some());
    std::fs::write(&cert, &made.ca.cert).unwrap();
    assert!(ensure(&home, &cluster, SystemTime::now()).unwrap().leaves == made.leaves);
}

#[test]
fn a_copy_of_a_profile_has_its_own_authority() {
    let (_dir, home) = home();
    ensure(&home, &named("demo"), SystemTime::now()).unwrap();
    let copied = home.profile("demo").join("ca.crt");
    std::fs::write(&copied, "theirs").unwrap();
    assert_eq!(certificate_of(&home, "demo"), copied);
    assert_eq!(Identity::load(&home, "demo").unwrap().ca, "theirs");
}

/// Killed between the two files.
#[test]
fn half_an_authority_is_finished() {
    let (_dir, home) = home();
    let cluster = named("demo");
    let made = ensure(&home, &cluster, SystemTime::now()).unwrap();
    let at = |name: &str| home.profile("demo").join(name);
    std::fs::rename(at("ca.crt"), at("ca.crt.tmp")).unwrap();
    assert!(ensure(&home, &cluster, SystemTime::now()).unwrap().ca == made.ca);
    assert!(!at("ca.crt.tmp").exists());
}

/// As minikube makes it: RSA, the key in its older form. A profile that it made has certificates by it.
#[test]
fn an_authority_of_minikubes_is_used() {
    let (dir, home) = home();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (key, cert) = (path("ca.key"), path("ca.crt"));
    assert!(openssl(&["genrsa", "-traditional", "-out", &key, "2048"]));
    let request = ["req", "-new", "-key", &key, "-out"];
    assert!(openssl(&[&request[..], &[&cert, "-x509", "-subj", "/CN=minikubeCA", "-days", "3650"]].concat()));
    std::fs::create_dir_all(home.profile("demo")).unwrap();
    let (csr, client) = (path("csr"), path("profiles/demo/client.crt"));
    assert!(openssl(&[&request[..], &[&csr, "-subj", "/CN=minikube-user"]].concat()));
    let sign =
        ["x509", "-req", "-in", &csr, "-CA", &cert, "-CAkey", &key, "-CAcreateserial", "-out", &client];
    assert!(openssl(&sign));
    let before = std::fs::read(&key).unwrap();
    assert!(before.starts_with(b"-----BEGIN RSA PRIVATE KEY"));
    let one = ensure(&home, &named("demo"), SystemTime::now()).unwrap();
    let two = ensure(&home, &named("demo"), SystemTime::now()).unwrap();
    assert!(one.leaves == two.leaves, "what it signed is found good");
    assert_eq!(std::fs::read(&key).unwrap(), before);
    assert!(openssl(&["verify", "-CAfile", &cert, &client]));
}
