//! An identity provider for the tests, which signs whatever it is told.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use service::identity::{Issuer, IssuerRules, RoleAssignment, RoleDefinition, RoleScope};
use service::{Principal, ServiceError};
use wire_cosmos::EMULATOR_KEY;

use crate::world::{WRONG_KEY, World};

const ISSUER: &str = "https://issuer.test/t";
const AUDIENCE: &str = "https://orrery.test";

fn key() -> &'static EcdsaKeyPair {
    static KEY: OnceLock<EcdsaKeyPair> = OnceLock::new();
    KEY.get_or_init(new_key)
}

fn new_key() -> EcdsaKeyPair {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What a gateway is configured with.
pub(crate) fn issuers() -> Arc<[Issuer]> {
    let (x, y) = key().public_key().as_ref()[1..].split_at(32);
    let (x, y) = (encode(x), encode(y));
    let set = format!(
        r#"{{"keys":[{{"kty":"EC","crv":"P-256","use":"sig","kid":"k","x":"{x}","y":"{y}"}}]}}"#
    );
    let rules = IssuerRules {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        tenant: Some("t".to_owned()),
    };
    Arc::from([Issuer::new(rules, set.as_bytes()).unwrap()])
}

/// What is said of somebody, valid for an hour.
pub(crate) fn claims(world: &World, principal: &str) -> String {
    let now = world.runtime.clock.now().as_unix_seconds();
    format!(
        r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","tid":"t","oid":"{principal}","nbf":{now},"exp":{}}}"#,
        now + 3_600
    )
}

/// The header for a token that the provider has signed.
pub(crate) fn signed(claims: &str) -> String {
    by(key(), r#"{"alg":"ES256","kid":"k"}"#, claims)
}

fn by(key: &EcdsaKeyPair, header: &str, claims: &str) -> String {
    let text = format!("{}.{}", encode(header), encode(claims));
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("type=aad&ver=1.0&sig={text}.{}", encode(signature))
}

/// The header for a token as the official SDKs' tests make them, with a key in it.
pub(crate) fn with_key(claims: &str, key: &str) -> String {
    let header = r#"{"typ":"JWT","alg":"RS256","kid":"CosmosEmulatorPrimaryMaster"}"#;
    format!("type=aad&ver=1.0&sig={}.{}.{}", encode(header), encode(claims), encode(key))
}

/// Headers with tokens that open nothing, although `ada` may do everything.
pub(crate) fn worthless(world: &World) -> Vec<(&'static str, String)> {
    let good = claims(world, "ada");
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        signed(&good.replace(from, to))
    };
    let now = world.runtime.clock.now().as_unix_seconds();
    let none = format!("{}.{}.", encode(r#"{"alg":"none"}"#), encode(&good));
    let by_public_key = {
        let text = format!("{}.{}", encode(r#"{"alg":"HS256","kid":"k"}"#), encode(&good));
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key().public_key().as_ref());
        format!("{text}.{}", encode(ring::hmac::sign(&secret, text.as_bytes())))
    };
    let aad = |token: &str| format!("type=aad&ver=1.0&sig={token}");
    let ended = good.replace(&format!(r#""exp":{}"#, now + 3_600), &format!(r#""exp":{now}"#));
    vec![
        ("no token", aad("")),
        ("no algorithm", aad(&none)),
        ("the public key as a secret", aad(&by_public_key)),
        ("another key", by(&new_key(), r#"{"alg":"ES256","kid":"k"}"#, &good)),
        ("an unknown key", by(key(), r#"{"alg":"ES256","kid":"other"}"#, &good)),
        ("another algorithm", by(key(), r#"{"alg":"ES384","kid":"k"}"#, &good)),
        ("another issuer", changed(ISSUER, "https://issuer.test/u")),
        ("another audience", changed(AUDIENCE, "https://other.test")),
        ("another tenant", changed(r#""tid":"t""#, r#""tid":"u""#)),
        ("expired", signed(&ended)),
        ("not yet valid", changed(&format!(r#""nbf":{now}"#), &format!(r#""nbf":{}"#, now + 999))),
        ("of nobody", changed(r#""oid":"ada","#, "")),
        ("another version", signed(&good).replace("ver=1.0", "ver=2.0")),
        ("a scheme of its own", signed(&good).replace("type=aad", "type=jwt")),
        ("as a resource token", signed(&good).replace("type=aad&ver=1.0", "type=resource&ver=1")),
        ("as a signature", signed(&good).replace("type=aad", "type=master")),
        ("a wrong key in it", with_key(&good, WRONG_KEY)),
        ("a part of the key in it", with_key(&good, &EMULATOR_KEY[..86])),
        ("no key in it", with_key(&good, "")),
        ("a key and expired", with_key(&ended, EMULATOR_KEY)),
    ]
}

impl World {
    /// Gives somebody a role; `role` is the number of a built-in one, or a data action.
    pub(crate) fn assign(&self, who: &str, role: &str, scope: &str) -> Result<(), ServiceError> {
        let operator = self.service.operator(Principal::Account);
        let scope: RoleScope = scope.parse().unwrap();
        let role = match format!("00000000-0000-0000-0000-00000000000{role}").parse() {
            Ok(built_in) => built_in,
            Err(_) => {
                let id = self.service.new_role_id();
                self.tokio.block_on(operator.define_role(RoleDefinition {
                    id: id.clone(),
                    name: role.to_owned(),
                    data_actions: vec![format!("Microsoft.DocumentDB/databaseAccounts/{role}")],
                    assignable_scopes: vec![RoleScope::ACCOUNT],
                }))?;
                id
            }
        };
        let (id, principal) = (self.service.new_role_id(), who.to_owned());
        self.tokio.block_on(operator.assign_role(RoleAssignment { id, principal, role, scope }))
    }
}
