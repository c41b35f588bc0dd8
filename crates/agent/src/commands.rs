//! Short commands of the node's own, with their output kept for the error message.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

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

/// What a command said, and how it ended.
pub struct Said {
    pub exit: Exit,
    pub output: String,
    pub errors: String,
}

/// Runs to the end with `input`; its output. On failure what it said goes into the error.
pub async fn feed(reaper: &Reaper, argv: &[String], input: &[u8]) -> Result<String> {
    let said = listen(reaper, argv, input).await?;
    if said.exit == Exit::Code(0) {
        return Ok(said.output);
    }
    bail!("{} ended with {}: {}{}", argv.join(" "), said.exit, tail(&said.output), tail(&said.errors));
}

/// Runs to the end with `input`, whatever end that is.
pub async fn listen(reaper: &Reaper, argv: &[String], input: &[u8]) -> Result<Said> {
    let Some((program, args)) = argv.split_first() else { bail!("an empty command") };
    // Files in memory take any amount, so that nobody has to read while the command runs.
    let (mut stdin, output, errors) = (memory()?, memory()?, memory()?);
    stdin.write_all(input).and_then(|()| stdin.rewind()).context("write a command's input")?;
    let mut command = Command::new(program);
    command.args(args).stdin(stdin).stdout(output.try_clone()?).stderr(errors.try_clone()?);
    let exit = reaper.spawn(&mut command)?.wait().await;
    Ok(Said { exit, output: text(output)?, errors: text(errors)? })
}

fn text(mut file: File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).context("read a command's output")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn memory() -> Result<File> {
    let fd = rustix::fs::memfd_create("command", rustix::fs::MemfdFlags::CLOEXEC).context("make a file")?;
    Ok(File::from(fd))
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
