//! Connections that end for others' sake, and the memory that all of them share.

use super::*;

#[tokio::test(start_paused = true)]
async fn mend_04_above_half_of_the_connections_those_that_prove_nothing_end_and_the_proven_stay() {
    let running = start(Limits { connections: 8, ..Limits::default() });
    let mut proven = [running.connect_proven().await, running.connect_proven().await];
    let address = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
    let mut lone = running.connect_from(address(1));
    let mut crowd: Vec<_> = (0..20).map(|_| running.connect_from(address(2))).collect();
    for client in &mut crowd[..19] {
        assert_eq!(until_end(client).await, Duration::ZERO, "long before any deadline");
    }
    assert_eq!(running.ended_by("shed"), 19);
    for client in proven.iter_mut().chain([&mut lone, &mut crowd[19]]) {
        client.write_all(REQUEST).await.unwrap();
        assert!(answer(client, 2).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn mend_04_heads_that_are_not_whole_answers_that_are_not_read_and_bodies_share_the_memory() {
    let limits = Limits { memory: 1024 * 1024, ..Limits::default() };
    let head = format!("POST /echo HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(15 * 1024));
    // A cost of 16 KiB each, and what of a head is more than 8 KiB: with the twentieth they come to the mark.
    let running = start(limits);
    let mut heads = Vec::new();
    for _ in 0..40 {
        let mut client = running.connect();
        client.write_all(head.as_bytes()).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        heads.push(client);
    }
    assert_eq!(running.ended_by("shed"), 40 - 19);
    let mut other = running.connect_from(Ipv4Addr::new(10, 0, 0, 9).into());
    other.write_all(REQUEST).await.unwrap();
    assert!(answer(&mut other, 2).await.is_some(), "who holds least is served");

    // What is answered stays charged until it is taken, and counts for proven connections as well.
    let running = start(limits);
    let mut unread = Vec::new();
    for _ in 0..3 {
        let mut client = running.connect_proven().await;
        client.write_all(b"POST /quarter HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        sleep(Duration::from_millis(1)).await;
        unread.push(client);
    }
    let mut refused = 0;
    for client in &mut unread {
        refused += u32::from(!answer(client, 0).await.unwrap().starts_with("http/1.1 200"));
    }
    assert_eq!(refused, 1, "of large answers only half of the memory");
    assert_eq!(running.metrics.shed.get_or_create(&Cause { cause: "memory" }).get(), 1);
    drop(unread);
    sleep(Duration::from_millis(1)).await;
    let mut again = running.connect_proven().await;
    again.write_all(b"POST /quarter HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert!(answer(&mut again, 256 * 1024).await.unwrap().starts_with("http/1.1 200"));
}
