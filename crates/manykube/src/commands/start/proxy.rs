//! What the environment says about a proxy: it is shown, and whether the nodes are asked directly is checked.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// The variables that are set, in upper or lower case, without passwords.
pub fn options(env: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let names = VARIABLES.iter().flat_map(|name| [(*name).to_owned(), name.to_lowercase()]);
    let set = names.filter_map(|name| Some((env(&name).filter(|v| !v.is_empty())?, name)));
    set.map(|(value, name)| (name, without_password(&value))).collect()
}

/// Programs that go by these variables would ask the proxy for the cluster's API.
pub fn warning(env: &dyn Fn(&str) -> Option<String>, ip: Ipv4Addr) -> Option<String> {
    let value = |name: &str| env(name).or_else(|| env(&name.to_lowercase())).filter(|v| !v.is_empty());
    value("HTTP_PROXY").or_else(|| value("HTTPS_PROXY"))?;
    (!is_direct(&value("NO_PROXY").unwrap_or_default(), ip)).then(|| {
        format!(
            "You appear to be using a proxy, but your NO_PROXY environment does not include the minikube IP ({ip}). \
             Add it: export NO_PROXY=$NO_PROXY,{ip}"
        )
    })
}

/// An address, a network, or everything.
fn is_direct(no_proxy: &str, ip: Ipv4Addr) -> bool {
    no_proxy.split(',').map(str::trim).any(|entry| {
        entry == "*"
            || entry.parse() == Ok(ip)
            || entry.parse::<Ipv4Net>().is_ok_and(|network| network.contains(&ip))
    })
}

/// `http://user:secret@host` without the secret.
fn without_password(value: &str) -> String {
    let Some((user, host)) = value.rsplit_once('@') else { return value.to_owned() };
    let (scheme, user) = user.split_once("://").map_or(("", user), |(scheme, user)| (scheme, user));
    let name = user.split(':').next().unwrap_or_default();
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{scheme}{name}:*****@{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: Ipv4Addr = Ipv4Addr::new(192, 168, 49, 2);

    fn warned(variables: &[(&str, &str)]) -> bool {
        let env = |k: &str| variables.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).to_owned());
        warning(&env, IP).is_some()
    }

    #[test]
    fn a_proxy_that_would_be_asked_for_the_cluster() {
        let proxy = ("HTTP_PROXY", "http://p:3128");
        assert!(!warned(&[]) && !warned(&[("HTTP_PROXY", "")]));
        assert!(warned(&[proxy]) && warned(&[("https_proxy", "http://p:3128")]));
        assert!(warned(&[proxy, ("NO_PROXY", "localhost,192.168.49.3,10.0.0.0/8")]));
        for direct in ["*", "192.168.49.2", "a, 192.168.49.0/24"] {
            assert!(!warned(&[proxy, ("NO_PROXY", direct)]), "{direct}");
        }
        assert!(!warned(&[proxy, ("no_proxy", "192.168.0.0/16")]));
    }

    #[test]
    fn passwords_are_not_shown() {
        for (value, shown) in [
            ("http://p:3128", "http://p:3128"),
            ("http://me:secret@p:3128", "http://me:*****@p:3128"),
            ("me:sec@ret@p", "me:*****@p"),
            ("localhost,10.0.0.0/8", "localhost,10.0.0.0/8"),
        ] {
            assert_eq!(without_password(value), shown);
        }
        let env = |k: &str| (k == "no_proxy").then(|| "x".to_owned());
        assert_eq!(options(&env), [("no_proxy".to_owned(), "x".to_owned())]);
    }
}
