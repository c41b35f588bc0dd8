//! Files of this host that a command names, for an engine that does not see them: they go along with it, and what it
//! writes comes back. The command is told their names there.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use drivers::docker::inside::{self, Input, Luggage};
use model::{Fault, Reason};

use crate::args::Commands;
use crate::commands::cp::{self, Side};
use crate::commands::image::{Args as ImageArgs, BuildArgs, Command as Image, LoadArgs, SaveArgs};

/// What the command writes, in its directory. That one has no name there, so it is called by who is in it.
const MADE: &str = "/proc/self/cwd/file";

/// The command as it is to be run there.
#[derive(Default)]
pub struct Packed {
    /// Without the program's name.
    pub words: Vec<String>,
    pub luggage: Luggage,
    pub input: Option<Input>,
    /// Whoever makes what is read from `input`.
    pub packing: Option<Packing>,
}

pub type Packing = tokio::task::JoinHandle<Result<()>>;

/// `None`: it names no file of this host.
pub fn pack(command: &Commands) -> Result<Option<Packed>> {
    match command {
        Commands::Cp(args) => copied(args),
        Commands::Image(ImageArgs { command: Image::Load(args) }) => loaded(args),
        Commands::Image(ImageArgs { command: Image::Save(args) }) => Ok(saved(args)),
        Commands::Image(ImageArgs { command: Image::Build(args) }) => built(args),
        _ => Ok(None),
    }
}

fn missing(path: &str) -> Fault {
    Fault::new(Reason::PathMissing, format!("There is no file {path}"))
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

fn copied(args: &cp::Args) -> Result<Option<Packed>> {
    let (source, target) = (Side::parse(&args.source), Side::parse(&args.target));
    if source.node.is_none() && !source.path.is_empty() {
        let file = Path::new(source.path);
        if !file.exists() {
            return Err(missing(source.path).into());
        }
        if file.is_dir() {
            return Err(cp::is_directory(source.path).into());
        }
        let mut luggage = Luggage::default();
        let name = add(&mut luggage, file)?;
        return Ok(Some(Packed { words: words(&["cp", &name, &args.target]), luggage, ..Packed::default() }));
    }
    if target.node.is_some() || target.path.is_empty() {
        return Ok(None);
    }
    let to = Path::new(target.path);
    let name = Path::new(source.path).file_name().context("the source has no name")?;
    let to = if target.path.ends_with('/') || to.is_dir() { to.join(name) } else { to.to_owned() };
    Ok(Some(Packed { words: words(&["cp", &args.source, MADE]), luggage: back(to), ..Packed::default() }))
}

fn back(to: PathBuf) -> Luggage {
    Luggage { back: Some(("file".to_owned(), to)), ..Luggage::default() }
}

/// Its name there, which no other file has.
fn add(luggage: &mut Luggage, file: &Path) -> Result<String> {
    let whole = fs_err::canonicalize(file)?;
    let own = file.file_name().or(whole.file_name()).context("the file has no name")?.to_string_lossy();
    let taken = luggage.there.iter().any(|(_, name)| *name == own);
    let name = if taken { format!("{}-{own}", luggage.there.len()) } else { own.into_owned() };
    luggage.there.push((whole, name.clone()));
    Ok(format!("./{name}"))
}

/// What looks like a path is one, as it is for the command itself.
fn loaded(args: &LoadArgs) -> Result<Option<Packed>> {
    // All of them: the next flag is not to be lost here.
    let LoadArgs { sources: named, daemon, remote, pull, overwrite, node } = args;
    let mut luggage = Luggage::default();
    let mut sources = Vec::new();
    for source in named {
        let exists = Path::new(source).exists();
        sources.push(match source.as_str() {
            "-" => source.clone(),
            _ if exists => add(&mut luggage, Path::new(source))?,
            path if path.starts_with(['/', '.']) => return Err(missing(path).into()),
            _ => source.clone(),
        });
    }
    if luggage.is_empty() {
        return Ok(None);
    }
    let mut all = words(&["image", "load", &format!("--overwrite={overwrite}")]);
    flags(&mut all, &[("daemon", *daemon), ("remote", *remote), ("pull", *pull)]);
    all.extend(node.iter().map(|node| format!("--node={node}")));
    all.extend(sources);
    Ok(Some(Packed { words: all, luggage, ..Packed::default() }))
}

fn flags(all: &mut Vec<String>, named: &[(&str, bool)]) {
    all.extend(named.iter().filter(|(_, on)| *on).map(|(name, _)| format!("--{name}")));
}

fn saved(args: &SaveArgs) -> Option<Packed> {
    let file = args.file.as_ref().filter(|file| *file != "-" && !args.daemon && !args.remote)?;
    Some(Packed {
        words: words(&["image", "save", &args.image, MADE]),
        luggage: back(file.into()),
        ..Packed::default()
    })
}

/// As an archive on standard input, which is what a build takes, too.
fn built(args: &BuildArgs) -> Result<Option<Packed>> {
    let BuildArgs { path: named, tag, file, build_arg, build_env, build_opt, push, node, all: everywhere } =
        args;
    let path = Path::new(named);
    let is_url = named.contains("://") || named.starts_with("git@");
    if named == "-" || is_url {
        return Ok(None);
    }
    if !path.exists() {
        return Err(missing(named).into());
    }
    let mut all = words(&["image", "build"]);
    let values = [
        ("tag", tag.as_slice()),
        ("file", file.as_slice()),
        ("build-arg", build_arg),
        ("build-env", build_env),
        ("build-opt", build_opt),
        ("node", node),
    ];
    for (name, values) in values {
        all.extend(values.iter().map(|value| format!("--{name}={value}")));
    }
    flags(&mut all, &[("push", *push), ("all", *everywhere)]);
    all.push("-".to_owned());
    let (from, packing) = if path.is_dir() {
        let (from, packing) = directory(path.to_owned())?;
        (from, Some(packing))
    } else {
        (fs_err::File::open(path)?.into_parts().0, None)
    };
    let input = Some(Input::Stream(Box::new(tokio::fs::File::from_std(from))));
    Ok(Some(Packed { words: all, luggage: Luggage::default(), input, packing }))
}

/// Its archive, made while it is read.
fn directory(path: PathBuf) -> Result<(std::fs::File, Packing)> {
    let (reader, writer) = std::io::pipe().context("make a pipe")?;
    let packing = tokio::task::spawn_blocking(move || archive(&path, writer));
    Ok((std::os::fd::OwnedFd::from(reader).into(), packing))
}

fn archive(dir: &Path, writer: impl std::io::Write) -> Result<()> {
    let mut out = std::io::BufWriter::new(writer);
    let mut tar = inside::archive(&mut out);
    tar.follow_symlinks(false);
    let packed = tar.append_dir_all(".", dir);
    if packed.is_ok() {
        tar.finish()?;
        drop(tar);
        return out.flush().context("send the archive");
    }
    // It would end the archive as if it were whole. The reader is to find one that is not.
    std::mem::forget(tar);
    let _ = out.write_all(&[0xff; 512]);
    packed.with_context(|| format!("read {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_there_and_here() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.tar");
        std::fs::write(&file, "x").unwrap();
        let file = file.display().to_string();
        let cp = |source: &str, target: &str| {
            copied(&cp::Args { source: source.to_owned(), target: target.to_owned() }).unwrap()
        };
        let there = cp(&file, "m02:/tmp/").unwrap();
        assert_eq!(there.words, ["cp", "./a.tar", "m02:/tmp/"]);
        assert_eq!(there.luggage.there[0].1, "a.tar");
        let here = cp("m02:/etc/hostname", &dir.path().display().to_string()).unwrap();
        assert_eq!(here.words, ["cp", "m02:/etc/hostname", MADE]);
        assert_eq!(here.luggage.back.unwrap().1, dir.path().join("hostname"));
        assert!(cp("m01:/x", "m02:/x").is_none());
    }

    #[test]
    fn an_archive_of_half_a_directory_is_none() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "x").unwrap();
        let mut whole = Vec::new();
        archive(dir.path(), &mut whole).unwrap();
        let read = |bytes: &[u8]| {
            tar::Archive::new(bytes).entries().unwrap().try_for_each(|entry| entry.map(drop)).is_ok()
        };
        assert!(read(&whole));
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("b.sock")).unwrap();
        let mut half = Vec::new();
        assert!(archive(dir.path(), &mut half).is_err());
        assert!(!read(&half), "{} bytes", half.len());
    }

    #[test]
    fn files_among_names() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        let files = ["a.tar", "d/a.tar"].map(|name| dir.path().join(name).display().to_string());
        files.iter().for_each(|file| std::fs::write(file, "x").unwrap());
        let sources = vec![files[0].clone(), "app:v1".to_owned(), files[1].clone()];
        let args = LoadArgs { sources, overwrite: true, ..LoadArgs::default() };
        let packed = loaded(&args).unwrap().unwrap();
        assert_eq!(packed.words, ["image", "load", "--overwrite=true", "./a.tar", "app:v1", "./1-a.tar"]);
        let args = LoadArgs { sources: vec!["app:v1".to_owned()], ..LoadArgs::default() };
        assert!(loaded(&args).unwrap().is_none());
        let args = LoadArgs { sources: vec!["./nothing".to_owned()], ..LoadArgs::default() };
        assert!(loaded(&args).is_err());
    }
}
