//! Node images by way of a registry: given by one store, taken by others, and by an engine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use system_tests::{Engine, Lab, Ran, Registry, archive, eventually};

const USAGE: i32 = 14;
const NETWORK: i32 = 40;
const UNUSABLE: i32 = 80;

#[test]
fn a_registry_between_stores_and_engines() {
    let mut lab = Lab::with_native();
    // With data of its own: what is pulled here would take the place of what other tests have brought.
    lab.engine = Some(Engine::start(&lab.path("e")));
    let registry = Registry::guarded(&lab.path("registry"));
    let reference = format!("{}/team/node:v1", Registry::HOST);
    nothing_without_a_login(&lab, &reference);
    log_in(&lab, Registry::USER, Registry::PASSWORD);
    let digest = pushed(&lab, &reference);
    what_cannot_be_pulled(&lab, &registry, &reference);
    let native = a_pull_that_was_killed(&lab, &reference, &digest);
    logins_that_a_helper_keeps(&lab, &native, &reference);
    a_cluster_of_namespaces(&lab, &native, &reference, &digest);
    a_cluster_of_containers(&lab, &reference, &digest);
    drop(registry);
    // What is there needs no registry, if its name says exactly what it is.
    let there = manykube(&lab, &native, &["node-image", "pull", &format!("{reference}@{digest}")]);
    assert!(there.ok().stdout.contains("is ready"));
    manykube(&lab, &native, &["node-image", "pull", &reference]).exit(NETWORK);
}

/// With a store of its own.
fn manykube(lab: &Lab, cache: &Path, args: &[&str]) -> Ran {
    in_home(lab, &lab.home(), cache, args)
}

fn in_home(lab: &Lab, home: &Path, cache: &Path, args: &[&str]) -> Ran {
    let began = Instant::now();
    let mut command = lab.command(args);
    command.env("MANYKUBE_HOME", home).env("MANYKUBE_CACHE", cache).env_remove("MANYKUBE_DRIVER");
    let output = command.output().expect("run manykube");
    Ran::new(format!("manykube {}", args.join(" ")), output, began.elapsed())
}

fn images(lab: &Lab, cache: &Path) -> usize {
    names(lab, cache).len()
}

fn digest_in(text: &str) -> String {
    let at = text.find("sha256:").unwrap_or_else(|| panic!("no digest in {text}"));
    text[at..].chars().take("sha256:".len() + 64).collect()
}

/// As `docker login` does, which would not keep a wrong one.
fn log_in(lab: &Lab, user: &str, password: &str) {
    let config = lab.docker_config().to_string_lossy().into_owned();
    let login = ["--config", &config, "login", "-u", user, "-p", password, Registry::HOST];
    lab.engine.as_ref().expect("the lab has one").docker(&login).ok();
}

fn logins(lab: &Lab) -> PathBuf {
    lab.docker_config().join("config.json")
}

/// One line that says what to do, and nothing was packed in vain.
fn nothing_without_a_login(lab: &Lab, reference: &str) {
    let cache = lab.path("nothing");
    let refused = |who: &str| {
        let host = Registry::HOST;
        let why = format!("the registry {host} does not allow it to {who}");
        let native = ["start", "--driver=native", "--base-image", reference];
        let docker = ["start", "--driver=docker", "--base-image", reference];
        for command in [&["node-image", "pull", reference][..], &native, &docker] {
            let ran = manykube(lab, &cache, command).exit(NETWORK);
            assert!(ran.stderr.contains(&why), "{command:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(&format!("docker login {host}")), "{}", ran.stderr);
        }
        let push = lab.manykube(&["node-image", "push", reference]).exit(NETWORK);
        assert!(
            push.stderr.contains(&why) && !push.stdout.contains("pack"),
            "{}{}",
            push.stdout,
            push.stderr
        );
    };
    refused("those who are not logged in");
    std::fs::create_dir_all(lab.docker_config()).expect("a directory");
    // "tester:wrong".
    let wrong = format!(r#"{{"auths":{{"{}":{{"auth":"dGVzdGVyOndyb25n"}}}}}}"#, Registry::HOST);
    std::fs::write(logins(lab), wrong).expect("write logins");
    refused(Registry::USER);
    std::fs::remove_file(logins(lab)).expect("remove logins");
}

/// The store has the image, but what its name stands for is asked.
fn logins_that_a_helper_keeps(lab: &Lab, cache: &Path, reference: &str) {
    let kept = std::fs::read(logins(lab)).expect("logins");
    let helper = lab.path("docker-credential-tests");
    let script = format!(
        "#!/bin/sh\nread host; test \"$1 $host\" = 'get {}' || {{ echo credentials not found; exit 1; }}\n\
         echo '{{\"Username\": \"{}\", \"Secret\": \"{}\"}}'\n",
        Registry::HOST,
        Registry::USER,
        Registry::PASSWORD
    );
    std::fs::write(&helper, script).expect("write a helper");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let path = format!("{}:{}", lab.path("").display(), std::env::var("PATH").expect("PATH"));
    let pull = |path: &str| {
        let mut command = lab.command(&["node-image", "pull", reference]);
        let output = command.env("MANYKUBE_CACHE", cache).env("PATH", path).output().expect("run manykube");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for text in [
        format!(r#"{{"credHelpers":{{"{}":"tests"}}}}"#, Registry::HOST),
        r#"{"credsStore":"tests"}"#.to_owned(),
    ] {
        std::fs::write(logins(lab), text).expect("write logins");
        assert_eq!(pull(&path).0, Some(0));
        let (code, said) = pull("/usr/bin:/bin");
        assert_eq!(code, Some(NETWORK), "without the helper");
        assert!(said.contains("cannot be read: run docker-credential-tests"), "{said}");
    }
    std::fs::write(logins(lab), kept).expect("write logins");
}

fn pushed(lab: &Lab, reference: &str) -> String {
    let first = lab.manykube(&["node-image", "push", reference]).ok();
    assert!(first.stdout.contains("send system"), "{}", first.stdout);
    println!("push: {:.1} s", first.elapsed.as_secs_f32());
    digest_in(&first.stdout)
}

/// One line, a code, and nothing in the store.
fn what_cannot_be_pulled(lab: &Lab, registry: &Registry, reference: &str) {
    let cache = lab.path("nothing");
    let blob = registry.layers().remove(0);
    let host = Registry::HOST;
    let docker = |args: &[&str]| lab.engine.as_ref().expect("the lab has one").docker(args).ok();
    let foreign = format!("{host}/foreign:v1");
    let file = lab.path("foreign.tar").to_string_lossy().into_owned();
    archive::oci(&lab.path("foreign.tar"), "foreign:v1", 0, archive::Fault::None);
    docker(&["import", &file, &foreign]);
    docker(&["--config", &lab.docker_config().to_string_lossy(), "push", &foreign]);
    docker(&["image", "rm", &foreign]);
    let zeros = "0".repeat(64);
    for (name, code, why) in [
        (format!("{host}/Bad Name:v1"), USAGE, "is not the name of an image"),
        (format!("{host}/team/nothing:v1"), NETWORK, "has no such image"),
        (format!("{host}/team/node@sha256:{zeros}"), NETWORK, "has no such image"),
        ("localhost:5999/node:v1".to_owned(), NETWORK, "cannot be reached"),
        (foreign.clone(), UNUSABLE, "not a node image"),
    ] {
        let refused = manykube(lab, &cache, &["node-image", "pull", &name]).exit(code);
        assert!(refused.stderr.contains(why), "{name}: {}", refused.stderr);
        let start = ["start", "--driver=native", "--base-image", &name];
        let refused = manykube(lab, &cache, &start).exit(code);
        assert!(refused.stderr.contains(why), "{name}: {}", refused.stderr);
    }
    let refused = lab.manykube(&["start", "--driver=docker", "--base-image", &foreign]).exit(UNUSABLE);
    assert!(refused.stderr.contains("not a node image"), "{}", refused.stderr);
    assert!(!docker(&["images"]).stdout.contains("/foreign"), "what is of no use was left in the engine");
    let unknown = lab.manykube(&["start", "--driver=native", "--base-image=mine"]).exit(UNUSABLE);
    assert!(unknown.stderr.contains("There is no node image mine"), "{}", unknown.stderr);

    // The smallest layer, with one byte of another value.
    let whole = std::fs::read(&blob).expect("a blob");
    let mut wrong = whole.clone();
    wrong[whole.len() / 2] ^= 1;
    std::fs::write(&blob, wrong).expect("damage a blob");
    let refused = manykube(lab, &cache, &["node-image", "pull", reference]).exit(UNUSABLE);
    let hex = blob.parent().and_then(Path::file_name).expect("a digest").to_string_lossy().into_owned();
    assert!(refused.stderr.contains(&format!("not sha256:{hex}")), "{}", refused.stderr);
    std::fs::write(&blob, whole).expect("mend the blob");
    assert_eq!(images(lab, &cache), 0);
    assert!(!lab.home().join("profiles/minikube/config.json").exists(), "a profile was made");
}

fn a_pull_that_was_killed(lab: &Lab, reference: &str, digest: &str) -> PathBuf {
    let cache = lab.path("native/cache");
    let pulling = cache.join("node-images/.pulling");
    let pull = ["node-image", "pull", reference];
    let mut killed = lab.command(&pull).env("MANYKUBE_CACHE", &cache).spawn().expect("start manykube");
    eventually("something of a layer", Duration::from_secs(30), || {
        let files = std::fs::read_dir(&pulling).map_err(|e| e.to_string())?;
        let bytes: u64 = files.flatten().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
        if bytes > 1 << 20 { Ok(()) } else { Err(format!("{bytes} bytes")) }
    });
    killed.kill().expect("kill it");
    killed.wait().expect("its end");
    assert_eq!(images(lab, &cache), 0);
    let pulled = manykube(lab, &cache, &pull).ok();
    println!("pull: {:.1} s", pulled.elapsed.as_secs_f32());
    assert_eq!(digest_in(&pulled.stdout), digest);
    assert!(pulled.stdout.contains("unpack state"), "{}", pulled.stdout);
    assert_eq!(images(lab, &cache), 1);
    let left = std::fs::read_dir(cache.join("node-images")).expect("the store").flatten();
    let left: Vec<_> = left.filter(|e| e.file_name().to_string_lossy().starts_with('.')).collect();
    assert_eq!(left.len(), 1, "besides the lock: {left:?}");
    manykube(lab, &cache, &["node-image", "verify"]).ok();
    cache
}

fn base_image(lab: &Lab) -> String {
    let text = std::fs::read_to_string(lab.home().join("profiles/minikube/config.json")).expect("a profile");
    let line = text.lines().find(|l| l.contains("\"BaseImage\"")).unwrap_or_else(|| panic!("{text}"));
    line.to_owned()
}

fn a_cluster_of_namespaces(lab: &Lab, cache: &Path, reference: &str, digest: &str) {
    let start = ["start", "--driver=native", "--base-image", reference];
    let dry = manykube(lab, cache, &[&start[..], &["--dry-run"]].concat());
    dry.ok();
    let started = manykube(lab, cache, &start).ok();
    assert!(!started.stdout.contains("receive"), "it was there: {}", started.stdout);
    assert!(base_image(lab).contains(&format!("{reference}@{digest}")), "{}", base_image(lab));
    for again in [&["start"][..], &start] {
        let again = manykube(lab, cache, again).ok();
        assert!(!again.stderr.contains("base image"), "{}", again.stderr);
    }
    // A node may name one of its own.
    manykube(lab, cache, &["node", "add", "--base-image", reference]).ok();
    let nodes = manykube(lab, cache, &["kubectl", "--", "get", "nodes", "--no-headers"]).ok().stdout;
    assert_eq!(nodes.lines().filter(|l| l.contains(" Ready ")).count(), 2, "{nodes}");
    let used = manykube(lab, cache, &["node-image", "rm", &names(lab, cache)[0]]);
    used.exit(UNUSABLE);
    another_home_with_the_same_cache(lab, cache);
    manykube(lab, cache, &["delete"]).ok();
}

/// What the cluster of one home is made of is not another's to remove.
fn another_home_with_the_same_cache(lab: &Lab, cache: &Path) {
    let holder = cache.parent().expect("a home");
    let used = in_home(lab, holder, cache, &["node-image", "rm", &names(lab, cache)[0]]).exit(UNUSABLE);
    assert!(used.stderr.contains(&lab.home().display().to_string()), "{}", used.stderr);
    let purged = in_home(lab, holder, cache, &["delete", "--all", "--purge"]).ok();
    assert!(format!("{}{}", purged.stdout, purged.stderr).contains("is kept"), "{}", purged.stderr);
    assert_eq!(images(lab, cache), 1);
    let mode = std::fs::metadata(cache.join("node-images")).expect("the store").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    manykube(lab, cache, &["node-image", "verify"]).ok();
}

fn names(lab: &Lab, cache: &Path) -> Vec<String> {
    let list = manykube(lab, cache, &["node-image", "list"]).ok().stdout;
    let names = list.split_whitespace().filter(|w| w.starts_with("v1.") && w.contains('-'));
    names.map(str::to_owned).collect()
}

/// The engine fetches it, the store takes it from there, and nodes are made of what the engine has.
fn a_cluster_of_containers(lab: &Lab, reference: &str, digest: &str) {
    let cache = lab.path("docker");
    let engine = lab.engine.as_ref().expect("the lab has one");
    let started = manykube(lab, &cache, &["start", "--driver=docker", "--base-image", reference]).ok();
    println!("start with docker, pulled by the engine: {:.1} s", started.elapsed.as_secs_f32());
    assert!(
        started.stdout.contains("receive ") && started.stdout.contains("from the engine"),
        "{}",
        started.stdout
    );
    assert!(!started.stdout.contains("Bringing"), "it is there: {}", started.stdout);
    assert!(base_image(lab).contains(digest), "{}", base_image(lab));
    let name = names(lab, &cache).remove(0);
    manykube(lab, &cache, &["node-image", "verify"]).ok();
    let own = engine.docker(&["image", "inspect", "-f", "{{.Id}}", &format!("manykube/node:{name}")]).ok();
    let pulled = engine.docker(&["image", "inspect", "-f", "{{.Id}}", reference]).ok();
    assert_eq!(own.text(), pulled.text());
    let nodes = manykube(lab, &cache, &["kubectl", "--", "get", "nodes", "--no-headers"]).ok();
    assert!(nodes.stdout.contains(" Ready "), "{}", nodes.stdout);
    manykube(lab, &cache, &["delete"]).ok();
}
