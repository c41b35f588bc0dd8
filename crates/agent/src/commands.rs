//! Short commands of the node's own, with their output kept for the error message.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::reaper::{Exit, Reaper};

/// Runs to the end; output goes to `log` and, on failure, its end into the error.
pub async fn run(reaper: &Reaper, argv: &[String], log: &str) -> Result<()> {
    let Some((program, args)) = argv.split_first() else { bail!("an empty command") };
    let before = std::fs::metadata(log).map_or(0, |m| m.len());
    let file = fs_err::OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(file.file().try_clone()?).stderr(file.into_parts().0);
    let exit = reaper.spawn(&mut command)?.wait().await;
    if exit == Exit::Code(0) {
        return Ok(());
    }
    let output = std::fs::read(log).unwrap_or_default();
    let new = usize::try_from(before).ok().and_then(|b| output.get(b..)).unwrap_or_default();
    bail!("{} ended with {exit}: {}", argv.join(" "), tail(&String::from_utf8_lossy(new)));
}

/// The last lines: where a program says what went wrong.
fn tail(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\n"), "a\nb");
        let long: String = (0..40).map(|i| format!("{i}\n")).collect();
        assert!(tail(&long).starts_with("28\n") && tail(&long).ends_with("39"));
    }
}
