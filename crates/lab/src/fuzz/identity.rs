//! What comes with a request before its client is known: tokens, and the scopes of roles.

use model::position::Timestamp;
use service::identity::jwt::{verify, verify_key_bearer};
use service::identity::{Issuer, IssuerRules, RoleId, RoleScope};

/// The public key of an example in RFC 7515; its private half is not in this repository.
const KEY_SET: &[u8] = br#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k",
    "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

/// What stands for a key of the account, and how a token has it.
const ACCOUNT_KEY: &[u8] = b"the key of the account";
const ENCODED_KEY: &str = "dGhlIGtleSBvZiB0aGUgYWNjb3VudA";

/// No token opens anything that was neither signed by the issuer nor has the key in it,
/// and a document that is no key set changes nothing.
pub fn bearer_token(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let rules = IssuerRules {
        issuer: "https://i.test".to_owned(),
        audience: "https://a.test".to_owned(),
        tenant: None,
    };
    let issuer = Issuer::new(rules, KEY_SET).expect("the example is a key set");
    let issuers = [issuer];
    let now = Timestamp::from_millis(1_800_000_000_000);
    assert!(verify(&issuers, &text, now).is_err(), "let in: {text}");
    if let Some(checked) = verify_key_bearer(|key| key == ACCOUNT_KEY, &text, now) {
        let last = text.rsplit('.').next().unwrap_or_default();
        assert_eq!(last.trim_end_matches('='), ENCODED_KEY, "taken for the key: {text}");
        assert!(checked.is_err() || text.len() > ENCODED_KEY.len(), "without claims: {text}");
    }
    let [issuer] = &issuers;
    // As a key set the bytes may be anything, and its keys then verify nothing of ours.
    let _refused = issuer.replace_keys(bytes);
    assert!(verify(&issuers, &text, now).is_err(), "let in: {text}");
}

/// A scope has one spelling, and ids of roles too, but for the case of their letters.
pub fn role_scope(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(scope) = text.parse::<RoleScope>() {
        assert_eq!(scope.to_string(), text);
        let mut names = text.split('/').skip(1);
        let known = matches!(names.next(), Some("" | "dbs")) && text.split('/').count() <= 5;
        assert!(known, "not the scope of a database or container: {text}");
    }
    if let Ok(id) = text.parse::<RoleId>() {
        assert!(id.as_str().eq_ignore_ascii_case(text));
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
    }
}
