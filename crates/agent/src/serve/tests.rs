//! The server and the client, joined by a stream in memory.

use std::time::Duration;

use model::node_spec::NodeFile;
use protocol::messages::{Size, Start};
use protocol::{Error, ExecEvent, Node as Client};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Node;

async fn node() -> Client {
    let (host, agent) = tokio::io::duplex(64 << 10);
    tokio::spawn(protocol::serve(agent, Node));
    Client::open("m", host).await.unwrap()
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|&w| w.to_owned()).collect()
}

#[tokio::test]
async fn a_command_has_its_input_output_and_exit_code() {
    let node = node().await;
    let input: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let output = node.run(&argv(&["cat"]), input.clone()).await.unwrap();
    assert!(output.code == 0 && output.stdout == input, "{} bytes", output.stdout.len());
    let output = node.run(&argv(&["sh", "-c", "echo no >&2; exit 7"]), Vec::new()).await.unwrap();
    assert_eq!((output.code, output.stderr.as_slice()), (7, b"no\n".as_slice()));
    let output = node.run(&argv(&["sh", "-c", "kill -9 $$"]), Vec::new()).await.unwrap();
    assert_eq!(output.code, 128 + 9);
    let output = node.run(&argv(&["/no/such/program"]), Vec::new()).await.unwrap();
    assert_eq!(output.code, 127);
    assert!(String::from_utf8_lossy(&output.stderr).contains("No such file"));
    // One that reads nothing is not waited for.
    assert_eq!(node.run(&argv(&["true"]), input).await.unwrap().code, 0);
}

#[tokio::test]
async fn what_a_command_left_behind_does_not_hold_it_up() {
    let node = node().await;
    let command = argv(&["sh", "-c", "sleep 60 & echo begun"]);
    let left = node.run(&command, Vec::new());
    let output = tokio::time::timeout(Duration::from_secs(20), left).await.expect("it returns").unwrap();
    assert_eq!(output.stdout, b"begun\n");
}

#[tokio::test]
async fn a_command_ends_with_its_caller() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let node = node().await;
    let line = format!("echo $$ > {}; exec sleep 60", pid_file.display());
    let exec = node.exec(Start { argv: argv(&["sh", "-c", &line]), ..Start::default() }).await.unwrap();
    let pid = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    drop(exec);
    let comm = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    while comm() == "sleep\n" && !is_zombie(&pid) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_zombie(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[tokio::test]
async fn a_terminal_has_the_size_of_the_users() {
    let node = node().await;
    let size = Size { rows: 33, columns: 77 };
    let start = Start {
        argv: argv(&["sh", "-c", "stty size; read x; stty size; tty"]),
        terminal: Some(size),
        ..Start::default()
    };
    let mut exec = node.exec(start).await.unwrap();
    let input = exec.take_input().unwrap();
    let (mut said, mut answered) = (String::new(), false);
    let code = loop {
        match exec.next().await.unwrap() {
            ExecEvent::Stdout(data) | ExecEvent::Stderr(data) => said += &String::from_utf8_lossy(&data),
            ExecEvent::Exit(code) => break code,
        }
        if said.contains("33 77") && !answered {
            answered = true;
            input.resize(Size { rows: 44, columns: 88 }).await.unwrap();
            input.send("x\r".into()).await.unwrap();
        }
    };
    assert!(code == 0 && said.contains("44 88") && said.contains("/dev/pts/"), "{code}: {said}");
}

#[tokio::test]
async fn files_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let node = node().await;
    let large: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let files =
        [NodeFile::new(path("a/b"), 0o640, "text"), NodeFile::new(path("large"), 0o600, large.clone())];
    node.put(&files).await.unwrap();
    assert_eq!(node.read(&path("a/b")).await.unwrap().unwrap(), b"text");
    let mut received = node.get(&path("large")).await.unwrap().unwrap();
    assert_eq!((received.info.mode, received.info.length), (0o600, 4_000_000));
    let mut data = Vec::new();
    received.data.read_to_end(&mut data).await.unwrap();
    assert!(data == large);
    assert!(node.get(&path("a")).await.unwrap().unwrap().info.directory);
    assert!(node.get(&path("none")).await.unwrap().is_none());
    assert!(node.read(&path("none/below")).await.unwrap().is_none());
    let digests = node.digests(vec![path("a/b"), path("none"), path("a")]).await.unwrap();
    assert!(digests[0].is_some_and(|d| d.mode == 0o640) && digests[1..] == [None, None]);
    node.put_stream(&path("c/d"), 0o644, large.as_slice()).await.unwrap();
    assert!(std::fs::read(path("c/d")).unwrap() == large);
    node.remove(vec![path("c/d"), path("none")]).await.unwrap();
    assert!(!dir.path().join("c/d").exists());
    assert!(matches!(node.put(&[NodeFile::new("relative", 0o600, "")]).await, Err(Error::Refused { .. })));
}

#[tokio::test]
async fn a_source_that_breaks_off_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x").to_string_lossy().into_owned();
    let broken = tokio_util::io::StreamReader::new(futures::stream::iter([
        Ok(bytes::Bytes::from_static(b"half")),
        Err(std::io::Error::other("the disk is gone")),
    ]));
    assert!(node().await.put_stream(&path, 0o600, broken).await.is_err());
}

#[tokio::test]
async fn a_stream_leads_to_sockets_of_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (mut guest, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        // The end of one direction is no end of the other.
        guest.read_to_end(&mut asked).await.unwrap();
        asked.reverse();
        guest.write_all(&asked).await.unwrap();
    });
    let node = node().await;
    let nowhere = format!("unix:{}", dir.path().join("nowhere").display());
    assert!(matches!(node.dial(std::slice::from_ref(&nowhere)).await, Err(Error::Refused { .. })));
    let mut stream = node.dial(&[nowhere, format!("unix:{}", path.display())]).await.unwrap();
    let question: Vec<u8> = (0..500_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    stream.write_all(&question).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer.reverse();
    assert!(answer == question, "{} bytes", answer.len());
}

#[tokio::test]
async fn a_program_is_killed_by_its_name() {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    let name = format!("manykube-test-{}", std::process::id());
    let mut command = std::process::Command::new("sleep");
    let mut child = command.arg0(format!("/some/where/{name}")).arg("60").spawn().unwrap();
    let node = node().await;
    let killed = node.kill(&name).await.unwrap();
    assert!(killed.count == 1 && killed.running.contains(&name), "{killed:?}");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let none = node.kill(&name).await.unwrap();
    assert!(none.count == 0 && !none.running.contains(&name), "{none:?}");
}

#[tokio::test]
async fn a_server_that_is_gone_is_told_from_one_that_refuses() {
    let (host, agent) = tokio::io::duplex(64 << 10);
    let server = tokio::spawn(protocol::serve(agent, Node));
    let node = Client::open("m", host).await.unwrap();
    assert!(node.is_open());
    let mut exec = node.exec(Start { argv: argv(&["sleep", "60"]), ..Start::default() }).await.unwrap();
    server.abort();
    assert!(matches!(exec.next().await, Err(Error::Silent { .. })));
    assert!(matches!(node.run(&argv(&["true"]), Vec::new()).await, Err(Error::Silent { .. })));
    assert!(!node.is_open());
}
