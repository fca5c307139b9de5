//! Tokens of identity providers: JSON Web Tokens, checked against the issuers that were
//! configured.
//!
//! Nothing of a token is believed before its signature was verified, except which issuer and which of that
//! issuer's keys to verify it with. The key decides which algorithms there are for it, not the
//! token, and only asymmetric ones exist here: so a public key is never taken for a
//! secret, and `none` is no algorithm.
//!
//! Keys are the issuer's, published as a JSON Web Key Set. The server fetches it;
//! here it is only parsed and, when it changes, replaced as a whole.

use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::json::{self, Value};
use model::position::Timestamp;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

use crate::identity::roles::TokenBearer;

/// Keys of one issuer: what providers publish is a handful, old and new ones.
const KEYS_MAX: usize = 64;

/// Groups that a token can name; more are not named by providers either, which refer to a
/// directory then.
const GROUPS_MAX: usize = 200;

/// How much the clock of an issuer may be ahead: a token is used in the moment that it is made. Its
/// end needs no such thing.
const AHEAD_SECS_MAX: u64 = 300;

/// An identity provider, and which of its tokens are for this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerRules {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` that they must have.
    pub audience: String,
    /// The `tid` that they must have, if it has several tenants.
    pub tenant: Option<String>,
}

/// A provider with the keys that it publishes, as last seen.
#[derive(Debug)]
pub struct Issuer {
    rules: IssuerRules,
    keys: RwLock<Arc<[SigningKey]>>,
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefused {
    #[error("it is no JSON Web Token")]
    Malformed,
    #[error("no issuer of such tokens is configured")]
    Issuer,
    #[error("its algorithm is not accepted")]
    Algorithm,
    #[error("it names no key of its issuer")]
    Key,
    #[error("its signature is wrong")]
    Signature,
    #[error("it is for another audience")]
    Audience,
    #[error("it is of another tenant")]
    Tenant,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it names nobody")]
    Nobody,
}

/// A document that is no set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeySet {
    #[error("it is no JSON Web Key Set")]
    Malformed,
    #[error("it has more than {KEYS_MAX} keys")]
    TooMany,
    #[error("it has no key that can verify a signature by RS256, PS256, ES256 or their kin")]
    Empty,
}

#[derive(Debug)]
struct SigningKey {
    id: Option<String>,
    /// The one algorithm it is for, if it says so.
    algorithm: Option<String>,
    public: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The point, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
}

impl Issuer {
    /// Takes the text of a key set.
    pub fn new(rules: IssuerRules, key_set: &[u8]) -> Result<Issuer, InvalidKeySet> {
        Ok(Issuer { rules, keys: RwLock::new(parse_key_set(key_set)?) })
    }

    /// One whose keys are not known yet: nothing of it is let in.
    #[must_use]
    pub fn without_keys(rules: IssuerRules) -> Issuer {
        Issuer { rules, keys: RwLock::new(Arc::from([])) }
    }

    #[must_use]
    pub fn rules(&self) -> &IssuerRules {
        &self.rules
    }

    /// From now on these are its keys. A text that is no key set changes nothing.
    pub fn replace_keys(&self, key_set: &[u8]) -> Result<(), InvalidKeySet> {
        let keys = parse_key_set(key_set)?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    fn keys(&self) -> Arc<[SigningKey]> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(&self, claims: &Claims, now: Timestamp) -> Result<(), TokenRefused> {
        if !claims.has_audience(&self.rules.audience) {
            return Err(TokenRefused::Audience);
        }
        if self.rules.tenant.is_some() && claims.text("tid") != self.rules.tenant.as_deref() {
            return Err(TokenRefused::Tenant);
        }
        claims.check_times(now)
    }
}

/// Who bears a token, if one of the issuers vouches for it.
pub fn verify(
    issuers: &[Issuer],
    token: &str,
    now: Timestamp,
) -> Result<TokenBearer, TokenRefused> {
    let parts = Parts::split(token)?;
    let header = Claims(parts.json(parts.header)?);
    let claims = Claims(parts.json(parts.payload)?);
    let issuer = claims.text("iss").ok_or(TokenRefused::Issuer)?;
    let issuer = issuers.iter().find(|one| one.rules.issuer == issuer);
    let issuer = issuer.ok_or(TokenRefused::Issuer)?;
    // An extension that must be understood, and none is.
    if header.0.get("crit").is_some() {
        return Err(TokenRefused::Algorithm);
    }
    let algorithm = header.text("alg").ok_or(TokenRefused::Algorithm)?;
    let keys = issuer.keys();
    let key = choose(&keys, header.text("kid")).ok_or(TokenRefused::Key)?;
    let signature = URL_SAFE_NO_PAD.decode(parts.signature).map_err(|_| TokenRefused::Malformed)?;
    key.verify(algorithm, parts.signed.as_bytes(), &signature)?;
    issuer.check(&claims, now)?;
    claims.bearer()
}

/// Whether a token of the official SDKs' tests is valid: unsigned, with a full key of the
/// account in the place of the signature, which is as good as the key itself. `None` if it is not of
/// that kind.
pub fn verify_key_bearer(
    is_full_key: impl Fn(&[u8]) -> bool,
    token: &str,
    now: Timestamp,
) -> Option<Result<TokenBearer, TokenRefused>> {
    let parts = Parts::split(token).ok()?;
    let key = URL_SAFE_NO_PAD.decode(parts.signature.trim_end_matches('=')).ok()?;
    if !is_full_key(&key) {
        return None;
    }
    let checked = parts.json(parts.header).and_then(|_| parts.json(parts.payload)).and_then(|it| {
        let claims = Claims(it);
        claims.check_times(now)?;
        Ok(TokenBearer { has_key: true, ..claims.bearer()? })
    });
    Some(checked)
}

/// The three parts of a token, and what of it is signed.
struct Parts<'a> {
    signed: &'a str,
    header: &'a str,
    payload: &'a str,
    signature: &'a str,
}

impl<'a> Parts<'a> {
    fn split(token: &'a str) -> Result<Parts<'a>, TokenRefused> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenRefused::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenRefused::Malformed)?;
        Ok(Parts { signed, header, payload, signature })
    }

    fn json(&self, part: &str) -> Result<Value, TokenRefused> {
        let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenRefused::Malformed)?;
        match json::parse(&bytes) {
            Ok(object @ Value::Object(_)) => Ok(object),
            Ok(_) | Err(_) => Err(TokenRefused::Malformed),
        }
    }
}

/// The key by that name; without a name, the only one.
fn choose<'a>(keys: &'a [SigningKey], id: Option<&str>) -> Option<&'a SigningKey> {
    match (id, keys) {
        (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

impl SigningKey {
    fn verify(&self, algorithm: &str, text: &[u8], signature: &[u8]) -> Result<(), TokenRefused> {
        if self.algorithm.as_deref().is_some_and(|own| own != algorithm) {
            return Err(TokenRefused::Algorithm);
        }
        let verified = match (&self.public, algorithm) {
            (PublicKey::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text, signature)
            }
            (PublicKey::P384(point), "ES384") => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(text, signature)
            }
            (PublicKey::Rsa { modulus, exponent }, _) => {
                let scheme = rsa(algorithm).ok_or(TokenRefused::Algorithm)?;
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(scheme, text, signature)
            }
            (PublicKey::P256(_) | PublicKey::P384(_), _) => return Err(TokenRefused::Algorithm),
        };
        verified.map_err(|_| TokenRefused::Signature)
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    match algorithm {
        "RS256" => Some(&RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Some(&RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Some(&RSA_PKCS1_2048_8192_SHA512),
        "PS256" => Some(&RSA_PSS_2048_8192_SHA256),
        "PS384" => Some(&RSA_PSS_2048_8192_SHA384),
        "PS512" => Some(&RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

/// What a token says.
struct Claims(Value);

impl Claims {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.0.get(name).and_then(Value::as_array).unwrap_or_default();
        list.iter().filter_map(Value::as_str)
    }

    /// A time; `None` if there is none. What is no whole number of seconds is malformed.
    fn secs(&self, name: &str) -> Result<Option<u64>, TokenRefused> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let secs = value.as_number().and_then(|number| number.as_i64());
        let secs = secs.and_then(|secs| u64::try_from(secs).ok());
        secs.map(Some).ok_or(TokenRefused::Malformed)
    }

    /// One audience, or a list of several.
    fn has_audience(&self, audience: &str) -> bool {
        self.text("aud") == Some(audience) || self.texts("aud").any(|one| one == audience)
    }

    fn check_times(&self, now: Timestamp) -> Result<(), TokenRefused> {
        let end = self.secs("exp")?.ok_or(TokenRefused::Expired)?;
        if now.secs() >= end {
            return Err(TokenRefused::Expired);
        }
        let begin = self.secs("nbf")?.unwrap_or_default();
        if begin > now.secs().saturating_add(AHEAD_SECS_MAX) {
            return Err(TokenRefused::NotYet);
        }
        Ok(())
    }

    /// The object that the token is about, or else its subject.
    fn bearer(&self) -> Result<TokenBearer, TokenRefused> {
        let id = self.text("oid").or_else(|| self.text("sub")).filter(|id| !id.is_empty());
        let id = id.ok_or(TokenRefused::Nobody)?.to_owned();
        let groups = self.texts("groups").take(GROUPS_MAX).map(str::to_owned).collect();
        Ok(TokenBearer { id, groups, has_key: false })
    }
}

/// Keys of other kinds, and for other uses, are left out.
fn parse_key_set(text: &[u8]) -> Result<Arc<[SigningKey]>, InvalidKeySet> {
    let set = json::parse(text).map_err(|_| InvalidKeySet::Malformed)?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or(InvalidKeySet::Malformed)?;
    if keys.len() > KEYS_MAX {
        return Err(InvalidKeySet::TooMany);
    }
    let keys: Arc<[SigningKey]> = keys.iter().filter_map(parse_key).collect();
    if keys.is_empty() { Err(InvalidKeySet::Empty) } else { Ok(keys) }
}

fn parse_key(key: &Value) -> Option<SigningKey> {
    let text = |name| key.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|used| used != "sig") {
        return None;
    }
    let number = |name| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let point = |len: usize| {
        let (x, y) = (number("x")?, number("y")?);
        (x.len() == len && y.len() == len).then(|| [&[4], x.as_slice(), &y].concat())
    };
    let public = match (text("kty")?, text("crv")) {
        ("RSA", _) => PublicKey::Rsa { modulus: number("n")?, exponent: number("e")? },
        ("EC", Some("P-256")) => PublicKey::P256(point(32)?),
        ("EC", Some("P-384")) => PublicKey::P384(point(48)?),
        _ => return None,
    };
    let owned = |name| text(name).map(str::to_owned);
    Some(SigningKey { id: owned("kid"), algorithm: owned("alg"), public })
}

#[cfg(test)]
mod tests;
