//! `GET /`: what clients ask first, and again every few minutes.

use model::json::{Object, Value};

use crate::gateway::Call;
use crate::headers::CONSISTENCY;
use crate::reply::Answer;
use protocol::address::REPLICAS;
use protocol::error::{ACCOUNT, WireError};

/// Limits that clients' query engines want to know, as a JSON text inside JSON.
const QUERY_ENGINE: &str = concat!(
    r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,"#,
    r#""maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"#,
    r#""queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"#,
    r#""sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"#,
    r#""sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":true,"#,
    r#""maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"sqlDisableOptimizationFlags":0,"#,
    r#""sqlAllowTop":true,"enableSpatialIndexing":true}"#
);

pub(crate) fn answer(call: &Call<'_>) -> Result<Answer, WireError> {
    if call.method != http::Method::GET {
        return Err(call.not_allowed());
    }
    call.require_account()?;
    let host = call.headers.text("host").unwrap_or("localhost:8081");
    // Clients send all further requests to this address, so it must be the one they reached
    // us by: a name, a forwarded port, a container.
    let location = Object::from_iter([
        ("name", Value::from(call.region())),
        ("databaseAccountEndpoint", Value::from(format!("{}://{host}/", call.scheme))),
    ]);
    let locations = Value::from(vec![location]);
    // From the greatest size clients compute how many replicas they read from for a quorum.
    let replicas = if call.is_direct() { REPLICAS.len() } else { 1 };
    let replicas = i64::try_from(replicas).unwrap_or(i64::MAX);
    let replication = || {
        let sizes = [
            ("minReplicaSetSize", Value::from(1_i64)),
            ("maxReplicasetSize", Value::from(replicas)),
        ];
        let mut policy = Object::from_iter([("asyncReplication", false)]);
        for (name, value) in sizes {
            policy.insert(name, value);
        }
        policy
    };
    let mut account = Object::new();
    account.insert("_self", "");
    account.insert("id", ACCOUNT);
    account.insert("_rid", "orrery.documents");
    account.insert("media", "//media/");
    account.insert("addresses", "//addresses/");
    account.insert("_dbs", "//dbs/");
    account.insert("writableLocations", locations.clone());
    account.insert("readableLocations", locations);
    account.insert("enableMultipleWriteLocations", false);
    account.insert("continuousBackupEnabled", false);
    account.insert("enableNRegionSynchronousCommit", false);
    account.insert("enablePerPartitionFailoverBehavior", false);
    account.insert("userReplicationPolicy", replication());
    account.insert(
        "userConsistencyPolicy",
        Object::from_iter([("defaultConsistencyLevel", CONSISTENCY)]),
    );
    account.insert("systemReplicationPolicy", replication());
    let coefficients = [("primaryReadCoefficient", 1_i64), ("secondaryReadCoefficient", 1_i64)];
    account.insert("readPolicy", Object::from_iter(coefficients));
    account.insert("queryEngineConfiguration", QUERY_ENGINE);
    let mut answer = Answer::json(http::StatusCode::OK, Value::Object(account).to_string());
    // Attachments had a storage of their own, which does not exist here.
    for name in ["x-ms-max-media-storage-usage-mb", "x-ms-media-storage-usage-mb"] {
        answer.set(name, "0");
    }
    Ok(answer)
}
