//! Pure: the go.mod of the throw-away module that a component is built in.
//!
//! `go install module@version` refuses modules with `replace` lines, and Kubernetes and etcd have some. So
//! each component is built in a module of our own that requires it: Go then picks the same versions of all
//! dependencies as upstream's own go.mod names.

use super::recipe::Module;

/// The module that builds `wanted`, whose own go.mod files are `upstream` (in the same order).
pub fn go_mod(name: &str, wanted: &[Module], upstream: &[String]) -> String {
    let mut text = format!("module manykube.invalid/build/{name}\n\n");
    // The language version and the runtime's compatibility settings are those of the program's own module.
    text += &format!(
        "go {}\n\n",
        upstream.iter().map(|file| go_version(file)).max_by_key(|v| numbers(v)).unwrap_or("1.24")
    );
    for line in upstream
        .iter()
        .flat_map(|file| file.lines())
        .filter(|line| line.starts_with("godebug ") && !line.ends_with('('))
    {
        text += &format!("{line}\n\n");
    }
    for module in wanted {
        text += &format!("require {} {}\n", module.path, module.version);
    }
    for (module, file) in wanted.iter().zip(upstream) {
        for staged in staging(file) {
            text += &format!("replace {staged} => {staged} {}\n", staging_version(&module.version));
        }
    }
    text
}

/// The modules that live in the Kubernetes repository and are also published on their own.
fn staging(go_mod: &str) -> impl Iterator<Item = &str> {
    go_mod.lines().filter_map(|line| {
        let (module, target) = line.trim().trim_start_matches("replace ").split_once(" => ")?;
        target.trim().starts_with("./staging/src/").then_some(module.trim())
    })
}

/// Kubernetes v1.37.1 has its libraries published as v0.37.1.
fn staging_version(kubernetes: &str) -> String {
    kubernetes.replacen("v1.", "v0.", 1)
}

fn go_version(go_mod: &str) -> &str {
    go_mod.lines().find_map(|line| line.strip_prefix("go ")).map_or("1.24", str::trim)
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, version: &str) -> Module {
        Module { path: path.into(), version: version.into() }
    }

    #[test]
    fn kubernetes_takes_its_libraries_from_where_they_are_published() {
        let upstream = "module k8s.io/kubernetes\n\ngo 1.26.0\n\ngodebug default=go1.26\n\nrequire (\n\tk8s.io/api v0.0.0\n)\n\n\
                        replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/kms => ./staging/src/k8s.io/kms\n)\n";
        let text = go_mod("kubernetes", &[module("k8s.io/kubernetes", "v1.37.1")], &[upstream.into()]);
        assert_eq!(
            text,
            "module manykube.invalid/build/kubernetes\n\ngo 1.26.0\n\ngodebug default=go1.26\n\n\
             require k8s.io/kubernetes v1.37.1\n\
             replace k8s.io/api => k8s.io/api v0.37.1\nreplace k8s.io/kms => k8s.io/kms v0.37.1\n"
        );
    }

    #[test]
    fn other_replaces_are_dropped_and_the_newest_language_wins() {
        let files = ["go 1.9\nreplace x/api => ../api\n".to_owned(), "go 1.26.6\n".to_owned()];
        let text = go_mod("etcd", &[module("x/a", "v3.7.0"), module("x/b", "v3.7.0")], &files);
        assert_eq!(
            text,
            "module manykube.invalid/build/etcd\n\ngo 1.26.6\n\nrequire x/a v3.7.0\nrequire x/b v3.7.0\n"
        );
    }
}
