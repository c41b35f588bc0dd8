//! The rows of minikube's exit codes that need a cluster.

use system_tests::Ran;
use system_tests::exit_codes::{When, rows, split};

use super::minikube::Minikube;

pub fn run(mk: &Minikube<'_>, when: When) {
    let dir = mk.lab.path("exit-codes");
    std::fs::create_dir_all(&dir).expect("make a directory");
    std::fs::write(dir.join("broken"), "a: [").expect("write a file");
    for (row, _, line, words) in rows(|case| case == when) {
        let (variables, args) = split(line, &dir);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let began = std::time::Instant::now();
        let output = mk.command("minikube", &args).envs(variables).output().expect("run minikube");
        let ran = Ran::new(format!("{}: {line}", row.id), output, began.elapsed()).exit(row.code);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(words), "{}: no {words:?} in\n{said}", ran.command);
        if ran.elapsed.as_secs() >= 2 {
            println!("{}: {:.1} s", ran.command, ran.elapsed.as_secs_f32());
        }
    }
}
