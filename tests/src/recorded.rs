//! What was typed, what was said on which stream and how it ended, as a golden file has it.
//!
//! ```text
//! $ manykube config get memory
//! err| Error: specified key could not be found in config
//! exit 14
//! ```
//!
//! The last line of an output that does not end with a newline has `out\` instead of `out|`.

use std::path::Path;

use crate::Ran;

/// What differs from run to run, from release to release and from host to host.
const FILTERS: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^ |│]*", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \w+", "TIME"),
    (r"\((\d+ms|\d+m ?\d+s|[\d.]+m?s)\)", "(TIME)"),
    (r"\b(sha256:)?[0-9a-f]{64}\b", "${1}DIGEST"),
    (r"\b[0-9a-f]{13}\b", "IMAGE ID"),
    (r#"(commit: |"commit":")\w+"#, "${1}COMMIT"),
    (r":3[0-2]\d{3}\b", ":NODEPORT"),
    (r"\b[\d.]+ ?[kMG]B *│", "SIZE │"),
    (r#"("size":|size: )"\d+""#, "${1}\"SIZE\""),
    (r" on [^\n]*? \((amd|arm)64\)", " on HOST (ARCH)"),
    (r"(cannot be had: )[^\n]*", "${1}WHY"),
    (r"(pid: |process )\d+", "${1}PID"),
    (r#"MANYKUBE_CACHE=[^"\n]*"#, "MANYKUBE_CACHE=CACHE"),
    (r"\bAAAA[\w+/=]+", "KEY"),
    // Any control plane may have the address.
    (r#""VirtualIPHolder":"[^"]+""#, "\"VirtualIPHolder\":\"HOLDER\""),
    (r"out\| virtual-ip: [\d.]+\n", ""),
];

#[derive(Default)]
pub struct Recorded {
    /// Texts of this run, and what stands for them.
    names: Vec<(String, String)>,
    text: String,
}

impl Recorded {
    /// This program's own version, and a directory of the test by another name.
    pub fn new(version: &str, dir: &Path) -> Recorded {
        let names = [(dir.display().to_string(), "$DIR".to_owned()), (version.to_owned(), "vX".to_owned())];
        Recorded { names: names.to_vec(), text: String::new() }
    }

    pub fn add(&mut self, ran: &Ran) {
        self.text += &format!("$ {}\n", ran.command);
        self.stream("out", &ran.stdout);
        self.stream("err", &ran.stderr);
        if ran.code != 0 {
            self.text += &format!("exit {}\n", ran.code);
        }
        self.text.push('\n');
    }

    fn stream(&mut self, name: &str, text: &str) {
        for line in text.split_inclusive('\n') {
            let (mark, line) = match line.strip_suffix('\n') {
                Some(line) => ('|', line),
                None => ('\\', line),
            };
            self.text += format!("{name}{mark} {line}").trim_end();
            self.text.push('\n');
        }
    }

    pub fn text(&self) -> String {
        self.names.iter().fold(self.text.clone(), |text, (is, shown)| text.replace(is, shown))
    }

    /// Compares it with the golden file of that name. `INSTA_UPDATE=always` writes the file anew.
    #[track_caller]
    pub fn is_as(&self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        FILTERS.iter().for_each(|(pattern, shown)| settings.add_filter(pattern, *shown));
        settings.bind(|| insta::assert_snapshot!(name, self.text()));
    }
}
