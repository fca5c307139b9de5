//! The tokens of each kind of frame: their ids, and the types of their values.
//!
//! Where clients disagree about a type (`TimeToLiveInSeconds`, `WorkloadId`) the token is not in
//! the table: it is read by the type it comes with, and skipped. So are tokens of the protocol that carries such
//! frames inside HTTP/2.

macro_rules! table {
    ($(#[$about:meta])* $module:ident {
        $($id:literal $name:ident $title:literal $type:ident,)*
    }) => {
        $(#[$about])*
        pub mod $module {
            use crate::codec::token::{Key, TableRow, Table};
            use crate::codec::value::{ValueType as _, value_type};

            $(pub const $name: Key<value_type::$type> = Key::new($id);)*

            /// All of them.
            pub static TABLE: Table = Table { rows: &[$(
                TableRow { id: $id, name: $title, token_type: value_type::$type::TYPE },
            )*] };
        }
    };
}

table! {
    /// What a context request may carry.
    context_request {
        0x00 PROTOCOL_VERSION "ProtocolVersion" ULong,
        0x01 CLIENT_VERSION "ClientVersion" SmallString,
        0x02 USER_AGENT "UserAgent" SmallString,
        0x03 CALLER_ID "CallerId" Byte,
        0x04 ENABLE_CHANNEL_MULTIPLEXING "EnableChannelMultiplexing" Byte,
        0x07 MUTUAL_TLS_AUTH_MODE "MutualTlsAuthMode" Byte,
    }
}

table! {
    /// What its answer may carry.
    context_response {
        0x00 PROTOCOL_VERSION "ProtocolVersion" ULong,
        0x01 CLIENT_VERSION "ClientVersion" SmallString,
        0x02 SERVER_AGENT "ServerAgent" SmallString,
        0x03 SERVER_VERSION "ServerVersion" SmallString,
        0x04 IDLE_TIMEOUT_SECS "IdleTimeoutSecs" ULong,
        0x05 UNAUTHENTICATED_TIMEOUT_SECS "UnauthenticatedTimeoutSecs" ULong,
    }
}

table! {
    /// What a request may carry.
    request {
        0x00 RESOURCE_ID "ResourceId" Bytes,
        0x01 AUTHORIZATION_TOKEN "AuthorizationToken" String,
        0x02 PAYLOAD_PRESENT "PayloadPresent" Byte,
        0x03 DATE "Date" SmallString,
        0x04 PAGE_SIZE "PageSize" ULong,
        0x05 SESSION_TOKEN "SessionToken" String,
        0x06 CONTINUATION_TOKEN "ContinuationToken" String,
        0x07 INDEXING_DIRECTIVE "IndexingDirective" Byte,
        0x08 MATCH "Match" String,
        0x09 PRE_TRIGGER_INCLUDE "PreTriggerInclude" String,
        0x0A POST_TRIGGER_INCLUDE "PostTriggerInclude" String,
        0x0B IS_FANOUT "IsFanout" Byte,
        0x0C COLLECTION_PARTITION_INDEX "CollectionPartitionIndex" ULong,
        0x0D COLLECTION_SERVICE_INDEX "CollectionServiceIndex" ULong,
        0x0E PRE_TRIGGER_EXCLUDE "PreTriggerExclude" String,
        0x0F POST_TRIGGER_EXCLUDE "PostTriggerExclude" String,
        0x10 CONSISTENCY_LEVEL "ConsistencyLevel" Byte,
        0x11 ENTITY_ID "EntityId" String,
        0x12 RESOURCE_SCHEMA_NAME "ResourceSchemaName" SmallString,
        0x13 REPLICA_PATH "ReplicaPath" String,
        0x14 RESOURCE_TOKEN_EXPIRY "ResourceTokenExpiry" ULong,
        0x15 DATABASE_NAME "DatabaseName" String,
        0x16 COLLECTION_NAME "CollectionName" String,
        0x17 DOCUMENT_NAME "DocumentName" String,
        0x18 ATTACHMENT_NAME "AttachmentName" String,
        0x19 USER_NAME "UserName" String,
        0x1A PERMISSION_NAME "PermissionName" String,
        0x1B STORED_PROCEDURE_NAME "StoredProcedureName" String,
        0x1C USER_DEFINED_FUNCTION_NAME "UserDefinedFunctionName" String,
        0x1D TRIGGER_NAME "TriggerName" String,
        0x1E ENABLE_SCAN_IN_QUERY "EnableScanInQuery" Byte,
        0x1F EMIT_VERBOSE_TRACES "EmitVerboseTraces" Byte,
        0x20 CONFLICT_NAME "ConflictName" String,
        0x26 PROFILE_REQUEST "ProfileRequest" Byte,
        0x27 ENABLE_LOW_PRECISION_ORDER_BY "EnableLowPrecisionOrderBy" Byte,
        0x28 CLIENT_VERSION "ClientVersion" SmallString,
        0x29 CAN_CHARGE "CanCharge" Byte,
        0x2A CAN_THROTTLE "CanThrottle" Byte,
        0x2B PARTITION_KEY "PartitionKey" String,
        0x2C PARTITION_KEY_RANGE_ID "PartitionKeyRangeId" String,
        0x31 MIGRATE_COLLECTION "MigrateCollection" Byte,
        0x33 SPATIAL_LEGACY "SpatialLegacy" Byte,
        0x34 PARTITION_COUNT "PartitionCount" ULong,
        0x35 COLLECTION_RID "CollectionRid" String,
        0x36 PARTITION_KEY_RANGE_NAME "PartitionKeyRangeName" String,
        0x3A SCHEMA_NAME "SchemaName" String,
        0x3B FILTER_BY_SCHEMA_RID "FilterBySchemaRid" String,
        0x3C USE_POLYGONS "UsePolygons" Byte,
        0x3D GATEWAY_SIGNATURE "GatewaySignature" String,
        0x3E ENABLE_LOGGING "EnableLogging" Byte,
        0x3F A_IM "A_IM" String,
        0x40 POPULATE_QUOTA_INFO "PopulateQuotaInfo" Byte,
        0x41 DISABLE_RU_PER_MINUTE "DisableRUPerMinute" Byte,
        0x42 POPULATE_QUERY_METRICS "PopulateQueryMetrics" Byte,
        0x43 RESPONSE_CONTINUATION_TOKEN_LIMIT_IN_KB "ResponseContinuationTokenLimitInKb" ULong,
        0x44 POPULATE_PARTITION_STATISTICS "PopulatePartitionStatistics" Byte,
        0x47 IF_MODIFIED_SINCE "IfModifiedSince" String,
        0x48 POPULATE_COLLECTION_THROUGHPUT_INFO "PopulateCollectionThroughputInfo" Byte,
        0x49 REMAINING_TIME_IN_MS "RemainingTimeInMs" ULong,
        0x4A CLIENT_RETRY_ATTEMPT_COUNT "ClientRetryAttemptCount" ULong,
        0x4B TARGET_LSN "TargetLsn" LongLong,
        0x4C TARGET_GLOBAL_COMMITTED_LSN "TargetGlobalCommittedLsn" LongLong,
        0x4D TRANSPORT_REQUEST_ID "TransportRequestId" ULong,
        0x50 SHARE_THROUGHPUT "ShareThroughput" Byte,
        0x51 PARTITION_RESOURCE_FILTER "PartitionResourceFilter" String,
        0x52 IS_READ_ONLY_SCRIPT "IsReadOnlyScript" Byte,
        0x53 IS_AUTO_SCALE "IsAutoScale" Byte,
        0x54 FORCE_QUERY_SCAN "ForceQueryScan" Byte,
        0x56 CAN_OFFER_REPLACE_COMPLETE "CanOfferReplaceComplete" Byte,
        0x57 EXCLUDE_SYSTEM_PROPERTIES "ExcludeSystemProperties" Byte,
        0x58 BINARY_ID "BinaryId" Bytes,
        0x5A EFFECTIVE_PARTITION_KEY "EffectivePartitionKey" Bytes,
        0x5E ENUMERATION_DIRECTION "EnumerationDirection" Byte,
        0x5F START_ID "StartId" Bytes,
        0x60 END_ID "EndId" Bytes,
        0x61 FANOUT_OPERATION_STATE "FanoutOperationState" Byte,
        0x62 START_EPK "StartEpk" Bytes,
        0x63 END_EPK "EndEpk" Bytes,
        0x64 READ_FEED_KEY_TYPE "ReadFeedKeyType" Byte,
        0x65 CONTENT_SERIALIZATION_FORMAT "ContentSerializationFormat" Byte,
        0x66 ALLOW_TENTATIVE_WRITES "AllowTentativeWrites" Byte,
        0x67 IS_USER_REQUEST "IsUserRequest" Byte,
        0x73 IS_BATCH_ATOMIC "IsBatchAtomic" Byte,
        0x74 SHOULD_BATCH_CONTINUE_ON_ERROR "ShouldBatchContinueOnError" Byte,
        0x75 IS_BATCH_ORDERED "IsBatchOrdered" Byte,
        0x82 RETURN_PREFERENCE "ReturnPreference" Byte,
        0x87 IS_CLIENT_ENCRYPTED "IsClientEncrypted" Byte,
        0x9D INTENDED_COLLECTION_RID "IntendedCollectionRid" String,
        0xA2 SDK_SUPPORTED_CAPABILITIES "SdkSupportedCapabilities" ULong,
        0xA9 POPULATE_INDEX_METRICS "PopulateIndexMetrics" Byte,
        0xB0 CORRELATED_ACTIVITY_ID "CorrelatedActivityId" Guid,
        0xB2 CHANGE_FEED_WIRE_FORMAT_VERSION "ChangeFeedWireFormatVersion" String,
        0xBF PRIORITY_LEVEL "PriorityLevel" Byte,
        0xC2 POPULATE_INDEX_METRICS_V2 "PopulateIndexMetricsV2" Byte,
        0xC4 SUPPORTED_SERIALIZATION_FORMATS "SupportedSerializationFormats" Byte,
        0xC8 OPTIMISTIC_DIRECT_EXECUTE "OptimisticDirectExecute" Byte,
        0xCC TRACE_PARENT "TraceParent" String,
        0xCD TRACE_STATE "TraceState" String,
        0xDA POPULATE_QUERY_ADVICE "PopulateQueryAdvice" Byte,
        0xDB THROUGHPUT_BUCKET "ThroughputBucket" Byte,
        0xEF HUB_REGION_PROCESSING_ONLY "HubRegionProcessingOnly" Byte,
        0xFE READ_CONSISTENCY_STRATEGY "ReadConsistencyStrategy" Byte,
    }
}

table! {
    /// What a response may carry.
    response {
        0x00 PAYLOAD_PRESENT "PayloadPresent" Byte,
        0x02 LAST_STATE_CHANGE "LastStateChange" SmallString,
        0x03 CONTINUATION_TOKEN "ContinuationToken" String,
        0x04 E_TAG "ETag" String,
        0x0C RETRY_AFTER_MS "RetryAfterMs" ULong,
        0x0D INDEXING_DIRECTIVE "IndexingDirective" Byte,
        0x0E MAX_QUOTA "MaxQuota" String,
        0x0F QUOTA_USAGE "QuotaUsage" String,
        0x10 SCHEMA_VERSION "SchemaVersion" SmallString,
        0x13 LSN "Lsn" LongLong,
        0x14 ITEM_COUNT "ItemCount" ULong,
        0x15 REQUEST_CHARGE "RequestCharge" Double,
        0x17 OWNER_FULL_NAME "OwnerFullName" String,
        0x18 OWNER_ID "OwnerId" String,
        0x1A QUORUM_ACKED_LSN "QuorumAckedLsn" LongLong,
        0x1B REQUEST_VALIDATION_FAILURE "RequestValidationFailure" Byte,
        0x1C SUB_STATUS "SubStatus" ULong,
        0x1D INDEX_TRANSFORMATION_PROGRESS "IndexTransformationProgress" ULong,
        0x1E CURRENT_WRITE_QUORUM "CurrentWriteQuorum" ULong,
        0x1F CURRENT_REPLICA_SET_SIZE "CurrentReplicaSetSize" ULong,
        0x20 LAZY_INDEXING_PROGRESS "LazyIndexingProgress" ULong,
        0x21 PARTITION_KEY_RANGE_ID "PartitionKeyRangeId" String,
        0x25 LOG_RESULTS "LogResults" String,
        0x26 XP_ROLE "XpRole" ULong,
        0x28 QUERY_METRICS "QueryMetrics" String,
        0x29 GLOBAL_COMMITTED_LSN "GlobalCommittedLsn" LongLong,
        0x30 NUMBER_OF_READ_REGIONS "NumberOfReadRegions" ULong,
        0x31 OFFER_REPLACE_PENDING "OfferReplacePending" Byte,
        0x32 ITEM_LSN "ItemLsn" LongLong,
        0x35 TRANSPORT_REQUEST_ID "TransportRequestId" ULong,
        0x36 SHARE_THROUGHPUT "ShareThroughput" Byte,
        0x38 DISABLE_RNTBD_CHANNEL "DisableRntbdChannel" Byte,
        0x39 SERVER_DATE_TIME_UTC "ServerDateTimeUtc" SmallString,
        0x3A LOCAL_LSN "LocalLsn" LongLong,
        0x3B QUORUM_ACKED_LOCAL_LSN "QuorumAckedLocalLsn" LongLong,
        0x3C ITEM_LOCAL_LSN "ItemLocalLsn" LongLong,
        0x3D HAS_TENTATIVE_WRITES "HasTentativeWrites" Byte,
        0x3E SESSION_TOKEN "SessionToken" String,
        0x44 INDEX_UTILIZATION "IndexUtilization" String,
        0x45 QUERY_EXECUTION_INFO "QueryExecutionInfo" String,
        0x51 BACKEND_REQUEST_DURATION_MS "BackendRequestDurationMs" Double,
        0x52 CORRELATED_ACTIVITY_ID "CorrelatedActivityId" Guid,
        0x5E CHANGE_FEED_INFO "ChangeFeedInfo" String,
        0x61 MAX_CONTENT_LENGTH "MaxContentLength" ULong,
        0x63 PHYSICAL_PARTITION_ID "PhysicalPartitionId" String,
        0x75 QUERY_ADVICE "QueryAdvice" String,
        0x78 GLOBAL_N_REGION_COMMITTED_GLSN "GlobalNRegionCommittedGlsn" LongLong,
    }
}
