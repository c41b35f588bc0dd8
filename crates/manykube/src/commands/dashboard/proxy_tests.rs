use tokio::net::UnixListener;

use super::*;

const PATH: &str = "/api/v1/namespaces/d/services/http:d:/proxy/";

/// Answers every connection with what came, and ends it.
async fn echo(listener: UnixListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut came = Vec::new();
        let is_whole = |came: &[u8]| match came.windows(14).any(|w| w == b"Content-Length") {
            true => came.ends_with(b"end"),
            false => came.ends_with(b"\r\n\r\n"),
        };
        while !is_whole(&came) {
            assert_ne!(stream.read_buf(&mut came).await.unwrap(), 0);
        }
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.append(&mut came);
        stream.write_all(&answer).await.unwrap();
    }
}

async fn ask(url: &str, request: &str) -> String {
    let address = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn only_who_has_the_secret_gets_to_the_dashboard_and_no_further() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kubectl.sock");
    tokio::spawn(echo(UnixListener::bind(&socket).unwrap()));
    let proxy = Proxy::open(0, PATH, &socket).await.unwrap();
    let url = proxy.url().unwrap();
    tokio::spawn(async move { proxy.serve().await });
    let secret = url.split('/').nth(3).unwrap().to_owned();
    assert_eq!(secret.len(), 32);
    assert!(url.ends_with(PATH), "{url}");

    let get = |path: String| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nReferer: {path}\r\n\r\n");
    let answer = ask(&url, &get(format!("/{secret}{PATH}static/x.js?a=..%2f"))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(&format!("GET {PATH}static/x.js?a=..%2f HTTP/1.1\r\n")), "{answer}");
    assert!(answer.contains("Host: 127.0.0.1\r\n") && answer.contains("Connection: close\r\n"), "{answer}");
    assert!(!answer.contains(&secret), "{answer}");

    let wrong = format!("{}{}", &secret[..31], if secret.ends_with('0') { '1' } else { '0' });
    for path in [
        PATH.to_owned(),
        "/api/v1/secrets".to_owned(),
        format!("/{wrong}{PATH}"),
        format!("/{secret}"),
        format!("/{secret}/api/v1/secrets"),
        format!("/{secret}{PATH}../../../../secrets"),
        format!("/{secret}{PATH}%2e%2E/secrets"),
        format!("/{secret}{PATH}/x"),
        format!("/é{secret}{PATH}"),
    ] {
        let answer = ask(&url, &get(path.clone())).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
    }
    let folded = format!("GET /{secret}{PATH} HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n");
    assert!(ask(&url, &folded).await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn bodies_and_upgrades_pass() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kubectl.sock");
    tokio::spawn(echo(UnixListener::bind(&socket).unwrap()));
    let proxy = Proxy::open(0, PATH, &socket).await.unwrap();
    let url = proxy.url().unwrap();
    tokio::spawn(async move { proxy.serve().await });
    let target = url.split_at(url.find("/api").unwrap() - 33).1.to_owned();
    let body = "x".repeat(200_000) + "end";
    let post = format!("POST {target} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let answer = ask(&url, &post).await;
    assert!(answer.ends_with(&body), "{} bytes", answer.len());
    let upgrade = format!("GET {target} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let answer = ask(&url, &upgrade).await;
    assert!(answer.contains("Connection: Upgrade\r\n") && !answer.contains("Connection: close"), "{answer}");
}
