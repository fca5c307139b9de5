//! Resource tokens: what clients get with a permission, and present instead of a key.
//!
//! A token carries what it grants and until when, signed with a key that is derived from an
//! account key: nothing is stored, and retiring an account key retires its tokens. As in
//! the service, deleting or replacing the permission does not revoke a token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use model::rid::ContainerRid;
use service::identity::{AccountKeys, GrantScope, Mode, PermissionGrant};
use sha2::Sha256;

use crate::auth::{Refused, rfc1123};

/// Keys for tokens are derived under this name, so that no signature of a request
/// can ever be one of a token.
const DERIVATION: &[u8] = b"orrery resource token 1";

/// What a resource token begins with.
const PREFIX: &str = "type=resource&ver=1&sig=";

/// The token for what a permission grants.
#[must_use]
pub fn issue(key: &[u8], grant: &PermissionGrant, until: Timestamp) -> String {
    let payload = encode(grant, until);
    let signature = signing(key, &payload).finalize().into_bytes();
    format!("{PREFIX}{};{};", URL_SAFE_NO_PAD.encode(signature), URL_SAFE_NO_PAD.encode(payload))
}

/// Reads the `sig` of a token that was issued under one of the full keys.
pub fn verify(
    keys: &AccountKeys,
    signature: &str,
    now: Timestamp,
) -> Result<PermissionGrant, Refused> {
    let mut parts = signature.split(';').map(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let mut part = || parts.next().flatten().ok_or(Refused::Malformed);
    let (signature, payload) = (part()?, part()?);
    // Compares in constant time.
    let signed = |key: &[u8]| signing(key, &payload).verify_slice(&signature).is_ok();
    if !keys.any_full(signed) {
        return Err(Refused::Token);
    }
    let text = String::from_utf8(payload).map_err(|_| Refused::Malformed)?;
    let (grant, until) = decode(&text).ok_or(Refused::Malformed)?;
    if now >= until {
        return Err(Refused::Expired { until: rfc1123(until), server: rfc1123(now) });
    }
    Ok(grant)
}

fn signing(key: &[u8], payload: &[u8]) -> Hmac<Sha256> {
    let keyed = |key: &[u8]| Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key");
    let derived = keyed(key).chain_update(DERIVATION).finalize().into_bytes();
    keyed(&derived).chain_update(payload)
}

/// Line by line: end, mode, container, key, scope. The last may hold line breaks.
fn encode(grant: &PermissionGrant, until: Timestamp) -> Vec<u8> {
    let mode = match grant.mode {
        Mode::Read => "read",
        Mode::All => "all",
    };
    let key = grant.key.as_ref().map(ToString::to_string).unwrap_or_default();
    let scope = match &grant.scope {
        GrantScope::Container => "container".to_owned(),
        GrantScope::Item(id) => format!("item {id}"),
        GrantScope::ItemRid(rid) => format!("rid {rid}"),
        GrantScope::Script(rid) => format!("script {rid}"),
    };
    format!("{}\n{mode}\n{}\n{key}\n{scope}", until.secs(), grant.container).into_bytes()
}

fn decode(text: &str) -> Option<(PermissionGrant, Timestamp)> {
    let mut lines = text.splitn(5, '\n');
    let until = Timestamp::from_millis(lines.next()?.parse::<u64>().ok()?.checked_mul(1000)?);
    let mode = match lines.next()? {
        "read" => Mode::Read,
        "all" => Mode::All,
        _ => return None,
    };
    let container = ContainerRid::parse(lines.next()?).ok()?;
    let key = match lines.next()? {
        "" => None,
        key => Some(PartitionKey::parse_json(key).ok()?),
    };
    let scope = match lines.next()?.split_once(' ') {
        None => GrantScope::Container,
        Some(("item", id)) => GrantScope::Item(id.to_owned()),
        Some(("rid", rid)) => GrantScope::ItemRid(rid.to_owned()),
        Some(("script", rid)) => GrantScope::Script(rid.to_owned()),
        Some(_) => return None,
    };
    Some((PermissionGrant { container, scope, mode, key }, until))
}

#[cfg(test)]
mod tests {
    use model::rid::DatabaseRid;
    use service::identity::AccountKey;

    use super::*;

    fn keys(word: &str) -> AccountKeys {
        let text = base64::engine::general_purpose::STANDARD.encode(word.repeat(16));
        AccountKeys::new(AccountKey::parse(&text).unwrap())
    }

    fn grants() -> Vec<PermissionGrant> {
        let container = ContainerRid::new(DatabaseRid::new(1).unwrap(), 2).unwrap();
        let key = PartitionKey::parse_json(r#"["a\nb",1,null]"#).unwrap();
        let grant = |scope, mode, key| PermissionGrant { container, scope, mode, key };
        vec![
            grant(GrantScope::Container, Mode::Read, None),
            grant(GrantScope::Container, Mode::All, Some(key.clone())),
            grant(GrantScope::Item("two\nlines and spaces".to_owned()), Mode::All, Some(key)),
            grant(GrantScope::ItemRid("AAAA".to_owned()), Mode::Read, None),
            grant(GrantScope::Script("BBBB".to_owned()), Mode::All, None),
        ]
    }

    #[test]
    fn tokens_grant_what_was_put_into_them() {
        let (until, keys, wrong) = (Timestamp::from_millis(5_000), keys("key"), keys("wrong"));
        for grant in grants() {
            let token = issue(&keys.signing(), &grant, until);
            let signature = token.strip_prefix(PREFIX).unwrap();
            let at = |millis| Timestamp::from_millis(millis);
            assert_eq!(verify(&keys, signature, at(4_999)), Ok(grant.clone()));
            assert!(matches!(verify(&keys, signature, at(5_000)), Err(Refused::Expired { .. })));
            assert_eq!(verify(&wrong, signature, at(0)), Err(Refused::Token));
        }
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let grant = grants().swap_remove(2);
        let keys = keys("key");
        let token = issue(&keys.signing(), &grant, Timestamp::from_millis(5_000));
        let signature = token.strip_prefix(PREFIX).unwrap();
        for at in 0..signature.len() - 1 {
            let mut bytes = signature.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            let verified = verify(&keys, &changed, Timestamp::from_millis(0));
            assert!(verified.is_err(), "character {at}");
        }
    }
}
