//! System properties as a protocol shows them: the ones that indexes know, and two that
//! they do not.

use std::sync::Arc;

use model::system_properties::{SystemProperties, SystemProperty, SystemValue};

#[must_use]
pub fn system_properties() -> Arc<SystemProperties> {
    let named = |name: &str, value| SystemProperty { name: name.to_owned(), value };
    let segments = ["databases", "containers", "items"].map(str::to_owned);
    let link = named("_self", SystemValue::Link { segments });
    let constant = named("_attachments", SystemValue::Text("attachments/".to_owned()));
    let indexed = SystemProperties::indexed();
    Arc::new(SystemProperties::new(indexed.iter().cloned().chain([link, constant]).collect()))
}
