//! Files of this host, for a cluster that is elsewhere.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use system_tests::Lab;
use system_tests::archive::{self, Fault};

const UNIMPLEMENTED: i32 = 16;
const PATH_MISSING: i32 = 35;

pub fn go_both_ways(lab: &Lab) {
    let text = |path: &Path| path.display().to_string();
    // As large as many pieces, and no two of them alike.
    let data: Vec<u8> =
        (0..2_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let (here, back) = (lab.path("some.data"), lab.path("back"));
    std::fs::write(&here, &data).expect("write a file");
    std::fs::set_permissions(&here, std::fs::Permissions::from_mode(0o640)).expect("chmod");
    std::fs::create_dir(&back).expect("make a directory");
    let copied = lab.manykube(&["cp", &text(&here), "m02:/tmp/"]).ok();
    println!("cp of 8 MB: {:.2} s", copied.elapsed.as_secs_f32());
    let there = lab.manykube(&["ssh", "-n", "m02", "--", "stat -c %a:%s /tmp/some.data"]).ok();
    assert_eq!(there.text(), format!("640:{}", data.len()));
    lab.manykube(&["cp", "m02:/tmp/some.data", "m03:/var/tmp/other"]).ok();
    lab.manykube(&["cp", "m03:/var/tmp/other", &text(&back)]).ok();
    assert!(std::fs::read(back.join("other")).expect("what came back") == data);
    lab.manykube(&["cp", "m02:/nothing", &text(&back)]).exit(PATH_MISSING);
    lab.manykube(&["cp", "/nothing", "/tmp/"]).exit(PATH_MISSING);

    let (archive, saved) = (lab.path("app.tar"), lab.path("saved.tar"));
    archive::oci(&archive, "docker.io/library/app:v1", 3, Fault::None);
    lab.manykube(&["image", "load", &text(&archive)]).ok();
    lab.manykube(&["image", "save", "app:v1", &text(&saved)]).ok();
    lab.manykube(&["image", "rm", "app:v1"]).ok();
    let from = std::fs::File::open(&saved).expect("what was saved");
    let loaded = lab.command(&["image", "load", "-"]).stdin(from).status().expect("run manykube");
    assert!(loaded.success());
    std::fs::write(back.join("Dockerfile"), "FROM app:v1\nCOPY other /other\n").expect("write a Dockerfile");
    lab.manykube(&["image", "build", "-t", "app:v2", &text(&back)]).ok();
    let images = lab.manykube(&["image", "ls", "-n", "m03"]).ok();
    assert!(["app:v1", "app:v2"].iter().all(|name| images.stdout.contains(name)), "{}", images.stdout);
    let mounted = lab.manykube(&["mount", "/tmp:/data"]).exit(UNIMPLEMENTED);
    assert!(mounted.stderr.contains("does not see the files"), "{}", mounted.stderr);
}
