//! What does a batch of a hundred operations cost the server as JSON, and what as HybridRow?
//!
//! One client sends the same documents in turn in either form, and the processor time that the
//! server took is compared. On: signatures and indexing, as usual. Off: throttling, TLS and the
//! disk, which cost the same for both.
//!
//! `cargo xtask bench batch`.
#![allow(clippy::unwrap_used, reason = "a bench stops at the first error")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[allow(dead_code, reason = "other benches use more of it")]
#[path = "http/client.rs"]
mod client;
#[path = "http/cpu.rs"]
mod cpu;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../tests/serve/program.rs"]
mod program;

use std::time::Duration;

use hybrid_row::HybridRow;
use hybrid_row::batch::{self, BatchOperation, DOCUMENT, operation_type};

use client::{Client, Document};
use program::Program;

const OPERATIONS: u64 = 100;
/// Of each form in a round; the forms take turns, so that a busy moment does not hit one alone.
const BATCHES: u32 = 40;
const ROUNDS: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    HybridRow,
}

const FORMS: [Form; 2] = [Form::Json, Form::HybridRow];

fn main() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(compare());
}

async fn compare() {
    let program = Program::start(&std::env::temp_dir(), &["--in-memory"]);
    let mut client = Client::connect(program.address()).await;
    client.prepare().await;
    let documents: Vec<Document> = (0..OPERATIONS).map(|number| Document::new(0, number)).collect();
    let bodies = FORMS.map(|form| body(form, &documents));
    for (form, body) in FORMS.iter().zip(&bodies) {
        println!("{form:?}: {} bytes", body.len());
        assert_eq!(client.send_batch(&documents[0].key, body).await, 200);
    }
    let mut taken = [Duration::ZERO; FORMS.len()];
    for _ in 0..ROUNDS {
        for (taken, body) in taken.iter_mut().zip(&bodies) {
            let before = cpu::taken(program.id()).unwrap();
            for _ in 0..BATCHES {
                assert_eq!(client.send_batch(&documents[0].key, body).await, 200);
            }
            *taken += cpu::taken(program.id()).unwrap() - before;
        }
    }
    for (form, taken) in FORMS.iter().zip(&taken) {
        println!("{form:?}: {:.2?} of processor time for a batch", *taken / (ROUNDS * BATCHES));
    }
    let [json, hybrid_row] = taken;
    println!("HybridRow / JSON: {:.2}", hybrid_row.as_secs_f64() / json.as_secs_f64());
}

fn body(form: Form, documents: &[Document]) -> Vec<u8> {
    match form {
        Form::Json => {
            let operation = |document: &Document| {
                format!(r#"{{"operationType":"Upsert","resourceBody":{}}}"#, document.body)
            };
            let operations: Vec<String> = documents.iter().map(operation).collect();
            format!("[{}]", operations.join(",")).into_bytes()
        }
        Form::HybridRow => {
            let row = |document| HybridRow::from(&operation(document));
            batch::write(documents.iter().map(row), 0).unwrap()
        }
    }
}

fn operation(document: &Document) -> BatchOperation<'_> {
    BatchOperation {
        operation_type: Some(operation_type::UPSERT),
        resource_type: Some(DOCUMENT),
        resource_body: Some(document.body.as_bytes()),
        ..BatchOperation::default()
    }
}
