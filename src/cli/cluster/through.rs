//! What a Service answers, asked through the API server's proxy: from wherever kubectl works, and with the rights that a person has.
//!
//! In: a Service, its port, a path and a message. Out: the status, one header, and the body up to a bound. Promises: no redirect is followed; no more
//! than the bound is kept in memory; what stays open is closed once the caller has enough. The API server takes the person's credentials off.

use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::Cluster;

/// A question to a Service.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// Namespace, name and port of the Service.
    pub service: (&'q str, &'q str, u16),
    /// GET, POST or DELETE.
    pub method: &'q Method,
    /// The path there, from its slash.
    pub path: &'q str,
    /// Headers besides those of every request.
    pub headers: &'q [(&'q str, &'q str)],
    /// JSON, or nothing.
    pub body: &'q str,
}

/// What was answered.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body, as far as it was read.
    pub body: Vec<u8>,
    /// How its reading ended.
    pub end: End,
}

/// How the reading of a body ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// It was read to its end, or as far as was wanted.
    #[default]
    Whole,
    /// There was more than the bound.
    TooLong,
    /// It broke off.
    BrokeOff,
}

impl Cluster {
    /// Asks a Service. Of the body at most `most` bytes are read, and no more once `enough` says so, which is asked first when the head is there.
    ///
    /// # Errors
    /// When the API server gives no answer.
    pub async fn through(
        &self,
        question: Question<'_>,
        most: usize,
        enough: impl Fn(&HeaderMap, &[u8]) -> bool,
    ) -> Result<Said, Silent> {
        let (namespace, service, port) = question.service;
        let uri = format!("/api/v1/namespaces/{namespace}/services/http:{service}:{port}/proxy{}", question.path);
        let mut request = Request::builder().method(question.method).uri(uri);
        for (name, value) in question.headers {
            request = request.header(*name, *value);
        }
        if !question.body.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Body::from(question.body.as_bytes().to_vec())).map_err(|_| Silent)?;
        let answer = self.client.send(request).await.map_err(|_| Silent)?;
        let (head, mut body) = answer.into_parts();
        let mut said = Said { status: head.status.as_u16(), headers: head.headers, ..Said::default() };
        if enough(&said.headers, &said.body) {
            return Ok(said);
        }
        // One request may keep others of this thread waiting for as long as its bytes are there already.
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                said.end = End::BrokeOff;
                break;
            };
            if let Ok(data) = frame.into_data() {
                if said.body.len() + data.len() > most {
                    said.end = End::TooLong;
                    break;
                }
                said.body.extend_from_slice(&data);
                if enough(&said.headers, &said.body) {
                    break;
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(said)
    }
}

/// The API server gave no answer to a question for a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API server gave no answer")]
pub struct Silent;
