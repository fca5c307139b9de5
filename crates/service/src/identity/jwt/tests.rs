//! Tokens that are let in, and everything next to them that is not.

use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512,
    RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};

use super::*;

fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

const CLAIMS: &str = r#"{"iss":"https://issuer/","aud":"https://orrery","tid":"t","oid":"ada","exp":1800003600,"nbf":1799999999,"groups":["g1","g2"]}"#;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rules() -> IssuerRules {
    IssuerRules {
        issuer: "https://issuer/".to_owned(),
        audience: "https://orrery".to_owned(),
        tenant: Some("t".to_owned()),
    }
}

/// A key of the tests alone.
fn rsa_key() -> RsaKeyPair {
    let text = include_str!("rsa-of-tests.pk8.base64").replace('\n', "");
    RsaKeyPair::from_pkcs8(&STANDARD.decode(text).unwrap()).unwrap()
}

fn ec_key(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

fn rsa_jwk(key: &RsaKeyPair, more: &str) -> String {
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
    let (n, e) = (encode(public.n), encode(public.e));
    format!(r#"{{"kty":"RSA","kid":"rsa","n":"{n}","e":"{e}"{more}}}"#)
}

fn ec_jwk(key: &EcdsaKeyPair, curve: &str) -> String {
    let (x, y) = key.public_key().as_ref()[1..].split_at(key.public_key().as_ref().len() / 2);
    let (x, y) = (encode(x), encode(y));
    format!(r#"{{"kty":"EC","kid":"{curve}","crv":"{curve}","x":"{x}","y":"{y}"}}"#)
}

fn issuer(keys: &[String]) -> [Issuer; 1] {
    let set = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
    [Issuer::new(rules(), set.as_bytes()).unwrap()]
}

fn unsigned(header: &str, claims: &str) -> String {
    format!("{}.{}", encode(header), encode(claims))
}

fn by_rsa(
    key: &RsaKeyPair,
    header: &str,
    claims: &str,
    scheme: &'static dyn RsaEncoding,
) -> String {
    let text = unsigned(header, claims);
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(scheme, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    format!("{text}.{}", encode(signature))
}

fn by_ec(key: &EcdsaKeyPair, header: &str, claims: &str) -> String {
    let text = unsigned(header, claims);
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", encode(signature))
}

fn header(algorithm: &str, key: &str) -> String {
    format!(r#"{{"typ":"JWT","alg":"{algorithm}","kid":"{key}"}}"#)
}

#[test]
fn tokens_of_every_accepted_algorithm_are_let_in() {
    let (rsa, ada) = (rsa_key(), "ada");
    let p256 = ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let p384 = ec_key(&ECDSA_P384_SHA384_FIXED_SIGNING);
    let issuers = issuer(&[rsa_jwk(&rsa, ""), ec_jwk(&p256, "P-256"), ec_jwk(&p384, "P-384")]);
    let rsa = |name: &str, scheme| by_rsa(&rsa, &header(name, "rsa"), CLAIMS, scheme);
    for token in [
        rsa("RS256", &RSA_PKCS1_SHA256),
        rsa("RS384", &RSA_PKCS1_SHA384),
        rsa("RS512", &RSA_PKCS1_SHA512),
        rsa("PS256", &RSA_PSS_SHA256),
        rsa("PS384", &RSA_PSS_SHA384),
        rsa("PS512", &RSA_PSS_SHA512),
        by_ec(&p256, &header("ES256", "P-256"), CLAIMS),
        by_ec(&p384, &header("ES384", "P-384"), CLAIMS),
    ] {
        let bearer = verify(&issuers, &token, now()).unwrap();
        assert_eq!((bearer.id.as_str(), bearer.has_key), (ada, false));
        assert_eq!(bearer.groups, ["g1", "g2"]);
    }
}

#[test]
fn no_other_algorithm_opens_anything() {
    let rsa = rsa_key();
    let p256 = ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(rsa.public());
    let issuers = issuer(&[rsa_jwk(&rsa, r#","alg":"RS256""#), ec_jwk(&p256, "P-256")]);
    let refusal = |token: &str| verify(&issuers, token, now()).unwrap_err();
    // The public key as a secret, as libraries once took it.
    for secret in [public.n.clone(), STANDARD.encode(&public.n).into_bytes()] {
        let text = unsigned(&header("HS256", "rsa"), CLAIMS);
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        let tag = ring::hmac::sign(&key, text.as_bytes());
        assert_eq!(refusal(&format!("{text}.{}", encode(tag))), TokenRefused::Algorithm);
    }
    for none in ["none", "None", "NONE", "", "RS1", "HS256", "EdDSA", "dir"] {
        for key in ["rsa", "P-256"] {
            let text = unsigned(&header(none, key), CLAIMS);
            for signature in ["", "AAAA"] {
                let expected = TokenRefused::Algorithm;
                assert_eq!(refusal(&format!("{text}.{signature}")), expected, "{none} {key}");
            }
        }
    }
    // A good signature by another algorithm than that of its key.
    let token = by_rsa(&rsa, &header("RS512", "rsa"), CLAIMS, &RSA_PKCS1_SHA512);
    assert_eq!(refusal(&token), TokenRefused::Algorithm);
    let token = by_ec(&p256, &header("ES384", "P-256"), CLAIMS);
    assert_eq!(refusal(&token), TokenRefused::Algorithm);
    let token = by_ec(&p256, &header("ES256", "rsa"), CLAIMS);
    assert_eq!(refusal(&token), TokenRefused::Algorithm);
    // A key that the token brings along, or an extension that is not understood.
    let own = ec_jwk(&ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING), "P-256");
    let brings = format!(r#"{{"alg":"ES256","jwk":{own}}}"#);
    assert_eq!(refusal(&by_ec(&p256, &brings, CLAIMS)), TokenRefused::Key);
    let critical = r#"{"alg":"ES256","kid":"P-256","crit":["b64"],"b64":false}"#;
    assert_eq!(refusal(&by_ec(&p256, critical, CLAIMS)), TokenRefused::Algorithm);
}

#[test]
fn claims_are_checked_one_by_one() {
    let key = ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let issuers = issuer(&[ec_jwk(&key, "P-256")]);
    let asked =
        |claims: &str| verify(&issuers, &by_ec(&key, &header("ES256", "P-256"), claims), now());
    let changed = |from: &str, to: &str| {
        assert!(CLAIMS.contains(from), "{from}");
        asked(&CLAIMS.replace(from, to)).map(|bearer| bearer.id)
    };
    use TokenRefused::{Audience, Expired, Malformed, Nobody, NotYet, Tenant};
    let refused = |refusal: TokenRefused| Err(refusal);
    let exp = r#""exp":1800003600"#;
    for (from, to, expected) in [
        (r#""iss":"https://issuer/""#, r#""iss":"https://issuer""#, refused(TokenRefused::Issuer)),
        (r#""iss":"https://issuer/","#, "", refused(TokenRefused::Issuer)),
        (r#""aud":"https://orrery""#, r#""aud":"https://other""#, refused(Audience)),
        (r#""aud":"https://orrery","#, "", refused(Audience)),
        (r#""aud":"https://orrery""#, r#""aud":["x","https://other"]"#, refused(Audience)),
        (r#""aud":"https://orrery""#, r#""aud":["x","https://orrery"]"#, Ok("ada".to_owned())),
        (r#""tid":"t""#, r#""tid":"u""#, refused(Tenant)),
        (r#""tid":"t","#, "", refused(Tenant)),
        (exp, r#""exp":1800000000"#, refused(Expired)),
        (exp, r#""exp":1800000001"#, Ok("ada".to_owned())),
        (exp, r#""exp":-1"#, refused(Malformed)),
        (exp, r#""exp":"1800003600""#, refused(Malformed)),
        (exp, r#""exp":1800003600.5"#, refused(Malformed)),
        (r#","exp":1800003600"#, "", refused(Expired)),
        (r#""nbf":1799999999"#, r#""nbf":1800000300"#, Ok("ada".to_owned())),
        (r#""nbf":1799999999"#, r#""nbf":1800000301"#, refused(NotYet)),
        (r#""oid":"ada""#, r#""sub":"ada""#, Ok("ada".to_owned())),
        (r#""oid":"ada","#, "", refused(Nobody)),
        (r#""oid":"ada""#, r#""oid":"""#, refused(Nobody)),
    ] {
        assert_eq!(changed(from, to), expected, "{to}");
    }
}

#[test]
fn every_changed_character_is_noticed() {
    let key = ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let issuers = issuer(&[ec_jwk(&key, "P-256")]);
    let token = by_ec(&key, &header("ES256", "P-256"), CLAIMS);
    assert!(verify(&issuers, &token, now()).is_ok());
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(verify(&issuers, &changed, now()).is_err(), "character {at}");
        assert!(verify(&issuers, &token[..at], now()).is_err(), "{at} characters");
    }
    assert!(verify(&issuers, &format!("{token}="), now()).is_err());
    assert!(verify(&issuers, &format!("{token}.x"), now()).is_err());
}

#[test]
fn keys_come_and_go_with_their_issuer() {
    let (old, new) =
        (ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING), ec_key(&ECDSA_P256_SHA256_FIXED_SIGNING));
    let set = |key: &EcdsaKeyPair| format!(r#"{{"keys":[{}]}}"#, ec_jwk(key, "P-256"));
    let issuers = [Issuer::without_keys(rules())];
    let token = |key| by_ec(key, &header("ES256", "P-256"), CLAIMS);
    assert_eq!(verify(&issuers, &token(&old), now()), Err(TokenRefused::Key));
    issuers[0].replace_keys(set(&old).as_bytes()).unwrap();
    assert!(verify(&issuers, &token(&old), now()).is_ok());
    assert!(issuers[0].replace_keys(b"<html>").is_err());
    assert!(verify(&issuers, &token(&old), now()).is_ok(), "what is no key set changes nothing");
    issuers[0].replace_keys(set(&new).as_bytes()).unwrap();
    assert_eq!(verify(&issuers, &token(&old), now()), Err(TokenRefused::Signature));
    assert!(verify(&issuers, &token(&new), now()).is_ok());
    // Without a name the only key is meant, and with several none is.
    let nameless = by_ec(&new, r#"{"alg":"ES256"}"#, CLAIMS);
    assert!(verify(&issuers, &nameless, now()).is_ok());
    let two = issuer(&[ec_jwk(&old, "P-256"), ec_jwk(&new, "P-256")]);
    assert_eq!(verify(&two, &nameless, now()), Err(TokenRefused::Key));
}

#[test]
fn sets_without_a_usable_key_are_refused() {
    let rsa = rsa_key();
    let encryption = rsa_jwk(&rsa, r#","use":"enc""#);
    let many = format!(r#"{{"keys":[{}]}}"#, vec!["{}"; KEYS_MAX + 1].join(","));
    for (text, expected) in [
        ("", InvalidKeySet::Malformed),
        ("[]", InvalidKeySet::Malformed),
        (r#"{"keys":{}}"#, InvalidKeySet::Malformed),
        (r#"{"keys":[]}"#, InvalidKeySet::Empty),
        (r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#, InvalidKeySet::Empty),
        (r#"{"keys":[{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}]}"#, InvalidKeySet::Empty),
        (&format!(r#"{{"keys":[{encryption}]}}"#), InvalidKeySet::Empty),
        (&many, InvalidKeySet::TooMany),
    ] {
        assert_eq!(Issuer::new(rules(), text.as_bytes()).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn a_token_with_a_key_in_it_is_as_good_as_the_key_while_it_lasts() {
    let key = b"the text of a key";
    let is_key = |given: &[u8]| given == key;
    let token = |claims: &str, key: &[u8]| {
        format!("{}.{}", unsigned(r#"{"typ":"JWT","alg":"RS256"}"#, claims), encode(key))
    };
    let bearer = verify_key_bearer(is_key, &token(CLAIMS, key), now()).unwrap().unwrap();
    assert_eq!((bearer.id.as_str(), bearer.has_key), ("ada", true));
    assert_eq!(verify_key_bearer(is_key, &token(CLAIMS, b"another key"), now()), None);
    assert_eq!(verify_key_bearer(is_key, &token(CLAIMS, b""), now()), None);
    let ended = CLAIMS.replace("1800003600", "1800000000");
    let refused = verify_key_bearer(is_key, &token(&ended, key), now());
    assert_eq!(refused, Some(Err(TokenRefused::Expired)));
    let refused = verify_key_bearer(is_key, &token("[]", key), now());
    assert_eq!(refused, Some(Err(TokenRefused::Malformed)));
}
