//! `/proc/meminfo` of a node: the host's, with the lines that are about size and use replaced.

/// What the node's control group counts, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub used: u64,
    /// Part of `used`: files that are in memory.
    pub files: u64,
    /// Part of `files`: what the kernel would drop first.
    pub idle_files: u64,
}

/// `None` where this is not what the kernel's counters look like.
pub fn usage(used: &str, stat: &str) -> Option<Usage> {
    let count = |names: [&str; 2]| {
        stat.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            // v1 counts the group alone and, as `total_`, with all below it; v2 only the latter.
            names.contains(&name).then(|| value.trim().parse().ok())?
        })
    };
    Some(Usage {
        used: used.trim().parse().ok()?,
        files: count(["total_cache", "file"])?,
        idle_files: count(["total_inactive_file", "inactive_file"])?,
    })
}

/// Which line of a v1 `memory.stat` comes first does not matter, but `inactive_file` stands there
/// beside `total_inactive_file`: only one family may be looked at.
pub fn only_totals(stat: &str) -> String {
    let totals: Vec<&str> = stat.lines().filter(|l| l.starts_with("total_")).collect();
    if totals.is_empty() { stat.to_owned() } else { totals.join("\n") }
}

pub fn render(host: &str, limit: u64, usage: Usage) -> String {
    let free = limit.saturating_sub(usage.used);
    let available = (free + usage.idle_files).min(limit);
    let mut text = String::new();
    for line in host.lines() {
        let Some((name, _)) = line.split_once(':') else { continue };
        let bytes = match name {
            "MemTotal" => limit,
            "MemFree" => free,
            "MemAvailable" => available,
            "Cached" => usage.files,
            "Buffers" | "SReclaimable" | "SwapCached" | "SwapTotal" | "SwapFree" => 0,
            _ => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
        };
        text.push_str(&format!("{:<15} {:>8} kB\n", format!("{name}:"), bytes >> 10));
    }
    text
}

/// The kernel's own word of the host's size, in bytes.
pub fn total(host: &str) -> Option<u64> {
    let line = host.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "MemTotal:       24689580 kB\nMemFree:        19873212 kB\nMemAvailable:   23000000 kB\n\
                        Buffers:          100000 kB\nCached:          3000000 kB\nSwapTotal:       2000000 kB\n\
                        Dirty:               400 kB\nHugePages_Total:       0\n";

    #[test]
    fn size_and_use_are_the_groups() {
        let usage = Usage { used: 512 << 20, files: 100 << 20, idle_files: 60 << 20 };
        let text = render(HOST, 2 << 30, usage);
        let lines: Vec<&str> = text.lines().collect();
        let want = [
            "MemTotal:        2097152 kB",
            "MemFree:         1572864 kB",
            "MemAvailable:    1634304 kB",
            "Buffers:               0 kB",
            "Cached:           102400 kB",
            "SwapTotal:             0 kB",
            "Dirty:               400 kB",
            "HugePages_Total:       0",
        ];
        assert_eq!(lines, want);
        assert_eq!(total(HOST), Some(24_689_580 << 10));
        assert_eq!(total(""), None);
    }

    #[test]
    fn more_used_than_there_is_leaves_nothing() {
        let text = render(HOST, 1 << 20, Usage { used: 2 << 20, ..Usage::default() });
        assert!(text.contains("MemFree:               0 kB"), "{text}");
    }

    #[test]
    fn both_versions_of_the_counters_are_understood() {
        let v1 = "cache 1\ninactive_file 1\ntotal_cache 300\ntotal_inactive_file 200\n";
        let v2 = "anon 9\nfile 300\ninactive_file 200\n";
        for stat in [v1, v2] {
            let read = usage("1000\n", &only_totals(stat));
            assert_eq!(read, Some(Usage { used: 1000, files: 300, idle_files: 200 }), "{stat}");
        }
        assert_eq!(usage("x", v2), None);
    }
}
