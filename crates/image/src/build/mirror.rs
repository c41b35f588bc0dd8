//! Which Debian mirror this machine uses, from apt's own configuration.

use std::path::PathBuf;

/// `None` on a machine that is not Debian, or has none configured.
pub fn of_this_machine() -> Option<String> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    // A derivative's mirror does not carry Debian's suites.
    if !release.lines().any(|line| line == "ID=debian") {
        return None;
    }
    let parts = std::fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = parts.chain([PathBuf::from("/etc/apt/sources.list")]).collect();
    files.sort();
    files
        .iter()
        .filter(|file| is_read_by_apt(file))
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .find_map(|text| mirror(&text))
}

fn is_read_by_apt(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|extension| extension == "list" || extension == "sources")
}

/// The first source whose address ends in `/debian`: in either of apt's two formats it is a word of its own.
fn mirror(text: &str) -> Option<String> {
    text.lines()
        .filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"))
        .flat_map(str::split_whitespace)
        .find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read_and_other_archives_passed_over() {
        let deb822 = "# http://old.example/debian\nTypes: deb\nURIs: http://a.example/debian-security http://b.example/debian/\n";
        let one_line = "deb [arch=amd64] https://tools.example/apt stable main\ndeb http://c.example/debian bookworm main\n";
        assert_eq!(mirror(deb822).as_deref(), Some("http://b.example/debian/"));
        assert_eq!(mirror(one_line).as_deref(), Some("http://c.example/debian"));
        assert_eq!(mirror("deb-src http://c.example/debian bookworm main\n"), None);
    }
}
