//! One request of a client in direct mode, within the limits of all others.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use wire_rntbd::{DirectAnswer, DirectGateway, DirectLetIn};

use super::{Answer, BodyPermit, Client, HttpService};
use crate::panics::catch_panic;

/// An authorised request that has arrived as a whole.
#[derive(Debug)]
pub(crate) struct DirectRequest {
    pub(crate) request: DirectLetIn,
    /// `None` if it was larger than payloads may be.
    pub(crate) payload: Option<Bytes>,
    /// The memory of the payload.
    pub(crate) memory: BodyPermit,
}

impl HttpService {
    /// Answers it. The answer counts as unread until its payload is dropped.
    pub(crate) async fn answer_direct(
        &self,
        gateway: Arc<DirectGateway>,
        DirectRequest { request, payload, memory }: DirectRequest,
        client: &Client,
    ) -> DirectAnswer {
        let (unanswered, changes) = (request.unanswered(), request.is_change());
        let payload_bytes = payload.as_ref().map_or(0, Bytes::len);
        let permit = client.outbox.reserve(request.answer_bytes_max(payload_bytes)).await;
        let answering = async move {
            let answer = catch_panic(gateway.answer(request, payload)).await;
            drop(memory);
            answer
        };
        // A change is completed even if its client leaves.
        let answered = match changes {
            true => tokio::spawn(answering).await.ok().flatten(),
            false => answering.await,
        };
        let Some(DirectAnswer { status, head, payload }) = answered else {
            tracing::error!(?unanswered, "a request in direct mode panicked");
            let message = "An internal error occurred.";
            return self.counted(unanswered.because(StatusCode::INTERNAL_SERVER_ERROR, message));
        };
        let held = self.process.answers.hold(client, Answer::new(payload), Some(permit));
        self.counted(match held {
            Ok(held) => DirectAnswer { status, head, payload: held.into_body() },
            // It happened, but there is no memory for the answer.
            Err(_) if changes && status.is_success() => {
                let message = "The outcome of the request cannot be returned for want of memory. \
                    Please read before trying again.";
                unanswered.because(StatusCode::REQUEST_TIMEOUT, message)
            }
            Err(_) => {
                let message = "Too many large answers at once. Please retry later.";
                unanswered.because(StatusCode::SERVICE_UNAVAILABLE, message)
            }
        })
    }

    pub(crate) fn counted(&self, answer: DirectAnswer) -> DirectAnswer {
        self.process.counters.answered(answer.status);
        answer
    }
}
