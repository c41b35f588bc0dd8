//! 200 generated files that are wrong in one way each: every one ends in an error with a place, quickly.

use std::time::{Duration, Instant};

use cluster_file::{Problems, parse};
use proptest::prelude::*;

const GOOD: &str = "\
apiVersion: manykube.dev/v1
kind: Cluster
name: demo
kubernetesVersion: v1.37.1
cpus: 2
memory: 3g
diskSize: 20g
nodes:
- role: control-plane
  count: 3
- name: big
  cpus: 8
  memory: 16Gi
  labels: {tier: data}
  taints: ['dedicated=data:NoSchedule']
  mounts: ['./data:/data:ro']
  ports: ['8080:30080']
- namePrefix: small-
  count: 2
networking:
  nodeSubnet: 192.168.60.0/24
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
apiServer:
  port: 8443
  extraSANs: [api.example.com]
featureGates: {AllAlpha: false}
";

#[test]
fn the_file_they_are_made_from_is_good() {
    if let Err(problems) = parse(GOOD) {
        panic!("{}", problems.show("good.yaml"));
    }
}

/// Keys with a value of the right type, which is replaced by one of a wrong type.
fn wrong_type() -> impl Strategy<Value = String> {
    let number =
        prop::sample::select(vec!["many", "[1]", "{a: 1}", "-1", "0", "1.5", "99999999999999999999", "'2'"]);
    let cpus = number.clone().prop_map(|v| GOOD.replace("cpus: 8", &format!("cpus: {v}")));
    let count = number.prop_map(|v| GOOD.replace("count: 2", &format!("count: {v}")));
    let list = prop::sample::select(vec!["word", "{a: b}", "3", "[[a]]", "[{}]", "[null]"]);
    let taints = list.prop_map(|v| GOOD.replace("['dedicated=data:NoSchedule']", v));
    let map = prop::sample::select(vec!["word", "[a]", "7", "{a: [b]}", "{'a b': c}", "{a: 'b c'}"]);
    let labels = map.prop_map(|v| GOOD.replace("{tier: data}", v));
    let boolean = prop::sample::select(vec!["yes", "1", "'true'", "[]", "{}", "null"]);
    let gate = boolean.prop_map(|v| GOOD.replace("AllAlpha: false", &format!("AllAlpha: {v}")));
    let nodes = prop::sample::select(vec!["nodes: word", "nodes: {}", "nodes: [word]", "nodes: [[]]"])
        .prop_map(|v| format!("apiVersion: manykube.dev/v1\nkind: Cluster\n{v}\n"));
    prop_oneof![cpus, count, taints, labels, gate, nodes]
}

fn unknown_key() -> impl Strategy<Value = String> {
    let line = prop::sample::select(
        GOOD.lines().enumerate().filter(|(_, l)| l.contains(": ")).map(|(i, _)| i).collect::<Vec<_>>(),
    );
    (line, "[a-z]{1,3}").prop_map(|(line, extra)| {
        let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
        lines[line] = lines[line].replacen(':', &format!("{extra}Qx:"), 1);
        lines.join("\n")
    })
}

fn duplicate() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["cpus: 2", "name: demo", "  port: 8443", "  count: 3"]);
    let twice = key.prop_map(|line| GOOD.replacen(line, &format!("{line}\n{line}"), 1));
    let name = prop::sample::select(vec!["big", "small-1", "small-2", "m02"]).prop_map(|name| {
        let first = GOOD.replace("networking:", &format!("- name: {name}\n- name: {name}\nnetworking:"));
        if name == "m02" { first } else { first.replacen(&format!("- name: {name}\n- name"), "- name", 1) }
    });
    prop_oneof![twice, name]
}

fn impossible_size() -> impl Strategy<Value = String> {
    let size =
        prop::sample::select(vec!["0", "1", "12x", "g", "-4g", "1e99g", "99999999t", "''", "4 gigs", "max"]);
    let memory = size.clone().prop_map(|s| GOOD.replace("memory: 16Gi", &format!("memory: {s}")));
    let disk = size.prop_map(|s| GOOD.replace("diskSize: 20g", &format!("diskSize: {s}")));
    let count = (253u32..).prop_map(|n| GOOD.replace("count: 2", &format!("count: {n}")));
    let plane = prop::sample::select(vec!["cpus: 1", "memory: 1g"])
        .prop_map(|s| GOOD.replace("  count: 3", &format!("  count: 3\n  {s}")));
    prop_oneof![memory, disk, count, plane]
}

fn overlap() -> impl Strategy<Value = String> {
    (8u8..=16, 0u8..=255).prop_flat_map(|(prefix, third)| {
        prop_oneof![
            Just(GOOD.replace("10.244.0.0/16", &format!("10.0.0.0/{}", prefix.min(9)))),
            Just(GOOD.replace("192.168.60.0/24", &format!("10.244.{third}.0/24"))),
            Just(GOOD.replace("10.96.0.0/12", &format!("10.244.{third}.0/24"))),
            Just(GOOD.replace("10.96.0.0/12", &format!("192.168.0.0/{prefix}"))),
            Just(GOOD.replace("192.168.60.0/24", &format!("192.168.{third}.0/{prefix}"))),
        ]
    })
}

fn bomb() -> impl Strategy<Value = String> {
    let aliases = (3usize..12, 8usize..60).prop_map(|(width, levels)| {
        let mut text = GOOD.to_owned() + "patches:\n  kubelet:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
        for i in 1..levels {
            let items = vec![format!("*a{}", i - 1); width].join(", ");
            text += &format!("    a{i}: &a{i} [{items}]\n");
        }
        text
    });
    let merges = (4usize..10, 10usize..40).prop_map(|(width, levels)| {
        let mut text = GOOD.to_owned() + "patches:\n  kubelet:\n    a0: &a0 {k: x}\n";
        for i in 1..levels {
            let items: Vec<String> = (0..width).map(|w| format!("k{w}: *a{}", i - 1)).collect();
            text += &format!("    a{i}: &a{i} {{<<: *a{}, {}}}\n", i - 1, items.join(", "));
        }
        text
    });
    let long = (20_000usize..200_000, 500usize..5000).prop_map(|(bytes, times)| {
        format!(
            "{GOOD}patches:\n  kubelet:\n    a: &a {}\n    b: [{}]\n",
            "x".repeat(bytes),
            "*a, ".repeat(times)
        )
    });
    let huge = (1usize..4).prop_map(|mib| GOOD.to_owned() + &"# and more\n".repeat(mib << 20));
    let many = (100_000usize..200_000).prop_map(|n| format!("{GOOD}images: [{}]\n", "a,".repeat(n)));
    let loops = Just(GOOD.replace("labels: {tier: data}", "labels: &l {tier: *l}"));
    prop_oneof![aliases, merges, long, huge, many, loops]
}

fn deep() -> impl Strategy<Value = String> {
    let open = prop::sample::select(vec![
        "[",
        "{a: ",
        "[{a: ",
        "- ",
        "? ",
        "- - ",
        "a:\n ",
        "!!map {a: ",
        "&x [",
        "\"",
        "[\n",
    ]);
    let place = prop::sample::select(vec!["", "patches:\n  kubelet:\n    a: ", "nodes: ", "apiVersion: "]);
    (open, place, 1000usize..100_000).prop_map(|(open, place, times)| {
        let head = if place == "apiVersion: " { "" } else { "apiVersion: manykube.dev/v1\nkind: Cluster\n" };
        format!("{head}{place}{}", open.repeat(times))
    })
}

/// A good file that was cut off, or has rubbish in it, in a place where it matters.
fn broken() -> impl Strategy<Value = String> {
    let rubbish = prop::sample::select(vec![
        "]",
        "}",
        "\t- x",
        "%",
        "@",
        "`",
        "\u{0}",
        "- - :",
        "*nobody",
        "!x y",
        "---\na: 1",
        "&",
    ]);
    let line = 3usize..7;
    (line, rubbish).prop_map(|(line, rubbish)| {
        let mut lines: Vec<&str> = GOOD.lines().collect();
        lines.insert(line, rubbish);
        lines.join("\n")
    })
}

fn bad_file() -> impl Strategy<Value = String> {
    prop_oneof![
        wrong_type(),
        unknown_key(),
        duplicate(),
        impossible_size(),
        overlap(),
        bomb(),
        deep(),
        broken(),
        "\\PC{0,300}",
    ]
}

/// The fastest of some tries: what else the machine does is not the parser's fault.
fn timed(text: &str) -> (Option<Problems>, Duration) {
    let mut best = Duration::MAX;
    let mut result = None;
    for _ in 0..5 {
        let begin = Instant::now();
        result = parse(text).err();
        best = best.min(begin.elapsed());
        if best < Duration::from_secs(1) {
            break;
        }
    }
    (result, best)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 50, ..ProptestConfig::default() })]
    #[test]
    fn every_bad_file_ends_in_an_error_with_a_place(text in bad_file()) {
        let (problems, took) = timed(&text);
        let Some(problems) = problems else {
            return Err(TestCaseError::fail(format!("accepted: {}", text.chars().take(2000).collect::<String>())));
        };
        prop_assert!(took < Duration::from_secs(1), "{took:?}");
        prop_assert!(!problems.list().is_empty());
        // The line after the last one stands for the end of the text.
        let lines = text.lines().count() + 1;
        for problem in problems.list() {
            let at = problem.position();
            prop_assert!((1..=lines).contains(&at.line) && at.column >= 1, "{at:?} of {lines} lines");
            prop_assert!(!problem.message.contains('\n') && problem.message.len() < 600, "{}", problem.message);
        }
        let shown = problems.show("cluster.yaml");
        let first = problems.list()[0].position();
        let summary = format!("cluster.yaml:{}:{}: ", first.line, first.column);
        prop_assert!(shown.starts_with(&summary), "{shown}");
        prop_assert!(shown.lines().nth(3).is_some_and(|l| l.contains('^')), "{shown}");
        prop_assert!(shown.len() < 20_000, "{} bytes", shown.len());
    }
}
