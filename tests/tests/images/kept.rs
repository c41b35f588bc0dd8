//! Where images may come from besides a file, and those that the host keeps.

use std::process::Stdio;

use system_tests::Lab;
use system_tests::archive::{self, Fault};

use super::{docker, same_everywhere};

/// Standard input, a directory in the OCI's layout, a Docker engine.
pub fn sources(lab: &Lab, machines: &[&str], env: &str) {
    let file = lab.path("sources.tar");
    let mk = |args: &[&str]| lab.manykube(args);
    archive::oci(&file, "example.com/stdin:v1", 1, Fault::None);
    let stdin = std::fs::File::open(&file).expect("the archive");
    let done = lab.command(&["image", "load", "-"]).stdin(stdin).status().expect("image load -");
    assert!(done.success());
    let nothing = mk(&["image", "load", "-"]).exit(80);
    assert!(nothing.stderr.contains("standard input is no archive"), "{}", nothing.stderr);

    archive::oci(&file, "example.com/layout:v1", 1, Fault::None);
    let dir = lab.path("layout");
    let tar = std::fs::File::open(&file).expect("the archive");
    tar::Archive::new(tar).unpack(&dir).expect("unpack the archive");
    mk(&["image", "load", &dir.to_string_lossy()]).ok();

    docker(env, &["tag", "theirs:v1", "engine:v1"]).ok();
    let mut load = lab.command(&["image", "load", "--daemon", "engine:v1"]);
    super::in_env(&mut load, env);
    assert!(load.status().expect("image load --daemon").success());
    // Without that environment there is no engine here.
    let none = mk(&["image", "load", "--daemon", "engine:v1"]).exit(80);
    assert!(none.stderr.contains("The Docker engine did not give"), "{}", none.stderr);

    for machine in machines {
        let list = mk(&["image", "ls", "-n", machine]).ok().stdout;
        for name in ["example.com/stdin:v1", "example.com/layout:v1", "docker.io/library/engine:v1"] {
            assert!(list.contains(name), "{machine} has no {name}: {list}");
        }
    }
    same_everywhere(lab, machines);
}

pub fn cache(lab: &Lab) {
    let name = "localhost:5000/team/ours:v1";
    let mut add = lab.command(&["cache", "add", name]);
    let added = add.env("MANYKUBE_CACHE", own_cache(lab)).stderr(Stdio::piped()).output().expect("cache add");
    let said = String::from_utf8_lossy(&added.stderr);
    assert!(added.status.success() && said.contains("deprecated"), "{said}");
    let mk = |args: &[&str]| {
        let output = lab.command(args).env("MANYKUBE_CACHE", own_cache(lab)).output().expect("run manykube");
        system_tests::Ran::new(args.join(" "), output, std::time::Duration::ZERO)
    };
    assert_eq!(mk(&["cache", "list"]).ok().stdout, format!("{name}\n"));
    mk(&["image", "rm", name]).ok();
    mk(&["cache", "reload"]).ok();
    assert!(mk(&["image", "ls"]).ok().stdout.contains(name));
    mk(&["cache", "delete", name]).ok();
    assert_eq!(mk(&["cache", "list"]).ok().stdout, "");
    mk(&["cache", "delete", name]).exit(14);
    assert!(mk(&["image", "ls"]).ok().stdout.contains(name), "the nodes keep it");
}

/// With the same node images, but no files of other tests: what is kept is named by the image alone.
fn own_cache(lab: &Lab) -> std::path::PathBuf {
    let own = lab.path("cache");
    if !own.exists() {
        std::fs::create_dir(&own).expect("make a cache");
        for entry in std::fs::read_dir(Lab::cache())
            .expect("the cache")
            .flatten()
            .filter(|e| e.file_name() != "images")
        {
            std::os::unix::fs::symlink(entry.path(), own.join(entry.file_name())).expect("link it");
        }
    }
    own
}
