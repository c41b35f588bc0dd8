//! Which Debian mirror this machine uses, from apt's own configuration.

use std::path::PathBuf;

/// Those of this machine, or Debian's own.
pub struct Mirrors {
    pub main: String,
    pub security: String,
}

impl Mirrors {
    pub fn of_this_machine() -> Mirrors {
        let known = configured();
        let find = |archive: &str| {
            let own = known.iter().find_map(|text| mirror(text, archive));
            own.unwrap_or_else(|| format!("http://deb.debian.org{archive}"))
        };
        Mirrors { main: find("/debian"), security: find("/debian-security") }
    }
}

/// apt's configuration, on a machine that is Debian: a derivative's mirror does not have Debian's suites.
fn configured() -> Vec<String> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !release.lines().any(|line| line == "ID=debian") {
        return Vec::new();
    }
    let parts = std::fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = parts.chain([PathBuf::from("/etc/apt/sources.list")]).collect();
    files.sort();
    let read = files.iter().filter(|file| is_read_by_apt(file));
    read.filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

fn is_read_by_apt(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|extension| extension == "list" || extension == "sources")
}

/// The first source whose address ends so: in either of apt's two formats it is a word of its own.
fn mirror(text: &str, archive: &str) -> Option<String> {
    text.lines()
        .filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"))
        .flat_map(str::split_whitespace)
        .find(|word| word.contains("://") && word.trim_end_matches('/').ends_with(archive))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read_and_other_archives_passed_over() {
        let deb822 = "# http://old.example/debian\nTypes: deb\nURIs: http://a.example/debian-security http://b.example/debian/\n";
        let one_line = "deb [arch=amd64] https://tools.example/apt stable main\ndeb http://c.example/debian bookworm main\n";
        assert_eq!(mirror(deb822, "/debian").as_deref(), Some("http://b.example/debian/"));
        assert_eq!(mirror(deb822, "/debian-security").as_deref(), Some("http://a.example/debian-security"));
        assert_eq!(mirror(one_line, "/debian").as_deref(), Some("http://c.example/debian"));
        assert_eq!(mirror(one_line, "/debian-security"), None);
        assert_eq!(mirror("deb-src http://c.example/debian bookworm main\n", "/debian"), None);
    }
}
