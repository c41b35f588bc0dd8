//! The profile's second nft table: packets that get lost on its bridge. There only while some do.

use std::path::Path;

use anyhow::Result;
use model::Home;
use model::injected::LOSS_OF;

use super::super::guard;
use super::super::network::bridge_name;
use crate::faults::Loss;

fn table(home: &Home, profile: &str) -> String {
    format!("manykube-{}-faults", bridge_name(home, profile))
}

/// Written as a whole and replaced as a whole. Without losses there is no table.
/// `cable` is the name of a machine's.
pub fn rules(home: &Home, profile: &str, losses: &[Loss], cable: impl Fn(&str) -> String) -> String {
    let table = table(home, profile);
    let mut text = format!("table bridge {table} {{}}\ndelete table bridge {table}\n");
    if losses.is_empty() {
        return text;
    }
    let (mut from, mut between, mut to) = (String::new(), String::new(), String::new());
    for loss in losses {
        match loss {
            Loss::Of(machine) => {
                from += &format!("    iifname \"{}\" counter drop\n", cable(machine));
                to += &format!("    oifname \"{}\" counter drop\n", cable(machine));
            }
            Loss::Between(a, b) => {
                let (a, b) = (cable(a), cable(b));
                between += &format!("    iifname \"{a}\" oifname \"{b}\" counter drop\n");
                between += &format!("    iifname \"{b}\" oifname \"{a}\" counter drop\n");
            }
            Loss::Some(machine, share) => {
                let chance = format!("numgen random mod {LOSS_OF} < {share} counter drop");
                from += &format!("    iifname \"{}\" {chance}\n", cable(machine));
                to += &format!("    oifname \"{}\" {chance}\n", cable(machine));
            }
        }
    }
    text += &format!("table bridge {table} {{\n");
    for (hook, rules) in [("prerouting", from), ("forward", between), ("postrouting", to)] {
        text += &format!(
            "  chain {hook} {{\n    type filter hook {hook} priority -300; policy accept;\n{rules}  }}\n"
        );
    }
    text + "}\n"
}

/// The table goes with the profile's network, whoever forgot it.
pub fn forget(home: &Home, profile: &str, image_rootfs: &Path) -> Result<()> {
    // A kernel without tables for bridges has none to remove.
    if let Err(e) = guard::nft(image_rootfs, &rules(home, profile, &[], |_| String::new())) {
        tracing::debug!("no table of faults: {e:#}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::network::cable_name;
    use super::*;

    #[test]
    fn rules_replace_all_that_was_there() {
        let home = Home::new("/h", None);
        let cable = |machine: &str| cable_name(&home, machine);
        let none = rules(&home, "demo", &[], cable);
        assert_eq!(none.lines().count(), 2);
        let losses = [
            Loss::Of("demo".into()),
            Loss::Between("demo".into(), "demo-m02".into()),
            Loss::Some("demo-m02".into(), 250),
        ];
        let all = rules(&home, "demo", &losses, cable);
        assert!(all.starts_with(&none));
        assert_eq!(all.matches("counter drop").count(), 6);
        assert_eq!(all.matches("numgen random mod 10000 < 250").count(), 2);
        let cable = cable("demo");
        assert!(all.contains(&format!("iifname \"{cable}\" counter drop")));
    }
}
