//! Hard limits: what no setting can exceed. Sizes are in bytes, times in milliseconds, as the names say.

/// Longest opaque name: task, execution, message, group, member, instance.
pub const NAME_BYTES_MAX: usize = 256;
/// Longest tenant or agent name.
pub const AGENT_BYTES_MAX: usize = 128;
/// Longest policy name.
pub const POLICY_NAME_BYTES_MAX: usize = 64;
/// Longest value of a message field that is neither a name nor listed below.
pub const TEXT_BYTES_MAX: usize = 256;
/// Longest `schema` and each of `compatible_with`.
pub const SCHEMA_BYTES_MAX: usize = 1024;
/// Longest `tracestate`.
pub const TRACESTATE_BYTES_MAX: usize = 1024;
/// Longest `artifact_ref`.
pub const ARTIFACT_REF_BYTES_MAX: usize = 2048;
/// Longest key of an attribute.
pub const ATTRIBUTE_KEY_BYTES_MAX: usize = 256;
/// Longest value of an attribute.
pub const ATTRIBUTE_VALUE_BYTES_MAX: usize = 4096;

/// Most entries of `attributes`.
pub const ATTRIBUTES_MAX: u32 = 64;
/// Most entries of `compatible_with`.
pub const COMPATIBLE_WITH_MAX: u32 = 16;
/// Most entries of `invalidates_message_ids`.
pub const INVALIDATES_MAX: u32 = 64;
/// Most entries of `recipient.agent_ids`.
pub const RECIPIENTS_MAX: u32 = 64;

/// Most fields of one encoded message, every entry of a list and fields unknown to the broker included.
pub const FIELDS_MAX: u32 = 1024;

/// Longest payload where the policy says nothing.
pub const PAYLOAD_BYTES_DEFAULT: u64 = 1024 * 1024;
/// Longest payload a policy may allow.
pub const PAYLOAD_BYTES_MAX: u64 = 15 * 1024 * 1024;
/// Most bytes of a message beside its payload, fields unknown to the broker included.
pub const ENVELOPE_BYTES_MAX: u64 = 512 * 1024;
/// Largest request, and most bytes of messages in one.
pub const REQUEST_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most messages of one publish.
pub const PUBLISH_MESSAGES_MAX: usize = 1000;
/// Most follow-ups of one Complete.
pub const FOLLOW_UPS_MAX: usize = 16;

/// Most settlements or extensions in one call.
pub const SETTLEMENTS_MAX: usize = 1000;
/// Most epochs in one `held` list.
pub const HELD_MAX: usize = 10_000;
/// Bytes of a settle's reason that are kept.
pub const REASON_BYTES_KEPT: usize = 512;
/// Longest delay of a retry.
pub const RETRY_DELAY_MS_MAX: u64 = 7 * 24 * 3600 * 1000;
/// Most messages of one fetch.
pub const FETCH_MESSAGES_MAX: u32 = 1000;
/// Bytes of a fetch's answer where the caller says nothing: what gRPC clients take by default (4 MiB), less some room for
/// notices and what goes around the answer.
pub const FETCH_BYTES_DEFAULT: u64 = 4 * 1024 * 1024 - 16 * 1024;
/// Most bytes an answer says beside a message it hands out, but for the name of the execution's product.
pub const DELIVERY_BYTES_MAX: u64 = 576;
/// Most bytes an answer says of an epoch that the caller holds.
pub const HELD_EPOCH_BYTES_MAX: u64 = 24;
/// Longest wait of a fetch.
pub const FETCH_WAIT_MS_MAX: u64 = 60_000;
/// Longest wait for an execution.
pub const AWAIT_MS_MAX: u64 = 600_000;

/// Silence after which a session is lost where the caller says nothing.
pub const SESSION_TIMEOUT_MS_DEFAULT: u64 = 30_000;
/// Shortest session timeout.
pub const SESSION_TIMEOUT_MS_MIN: u64 = 1000;
/// Longest session timeout.
pub const SESSION_TIMEOUT_MS_MAX: u64 = 3_600_000;
/// Longest duration of a lease of its own; it may be extended.
pub const LEASE_MS_MAX: u64 = 24 * 3600 * 1000;
/// Attempts before a message is set aside where the group says nothing.
pub const ATTEMPTS_DEFAULT: u32 = 5;
/// Most attempts a group may allow.
pub const ATTEMPTS_MAX: u32 = 1000;

/// Longest evidence of a resolution.
pub const EVIDENCE_BYTES_MAX: usize = 4096;
/// Rows of a page where the caller says nothing.
pub const PAGE_SIZE_DEFAULT: u32 = 100;
/// Most rows of a page.
pub const PAGE_SIZE_MAX: u32 = 1000;

/// All that admission lets stand beside the payload, with room for tags and lengths.
const KNOWN_FIELDS_BYTES_MAX: usize = 32 * (TEXT_BYTES_MAX + 8)
    + (COMPATIBLE_WITH_MAX as usize + 1) * (SCHEMA_BYTES_MAX + 8)
    + INVALIDATES_MAX as usize * (NAME_BYTES_MAX + 8)
    + RECIPIENTS_MAX as usize * (AGENT_BYTES_MAX + 8)
    + TRACESTATE_BYTES_MAX
    + ARTIFACT_REF_BYTES_MAX
    + ATTRIBUTES_MAX as usize * (ATTRIBUTE_KEY_BYTES_MAX + ATTRIBUTE_VALUE_BYTES_MAX + 16);

const _: () = assert!(ATTRIBUTES_MAX + COMPATIBLE_WITH_MAX + INVALIDATES_MAX + RECIPIENTS_MAX < FIELDS_MAX / 2);
const _: () = assert!(KNOWN_FIELDS_BYTES_MAX as u64 <= ENVELOPE_BYTES_MAX, "every field at its limit fits an envelope");
const _: () = assert!(PAYLOAD_BYTES_MAX + ENVELOPE_BYTES_MAX < REQUEST_BYTES_MAX, "the largest message fits a request");
const _: () = assert!(PAYLOAD_BYTES_DEFAULT <= PAYLOAD_BYTES_MAX);
const _: () = assert!(REQUEST_BYTES_MAX <= u32::MAX as u64, "lengths fit 32 bits");
const _: () = assert!(AGENT_BYTES_MAX <= NAME_BYTES_MAX && POLICY_NAME_BYTES_MAX <= NAME_BYTES_MAX);
const _: () = assert!(SESSION_TIMEOUT_MS_MIN <= SESSION_TIMEOUT_MS_DEFAULT);
const _: () = assert!(SESSION_TIMEOUT_MS_DEFAULT <= SESSION_TIMEOUT_MS_MAX);
const _: () = assert!(ATTEMPTS_DEFAULT <= ATTEMPTS_MAX && PAGE_SIZE_DEFAULT <= PAGE_SIZE_MAX);

/// Connections that the gRPC port serves at a time, where neither its owner nor the limit of open files says less.
pub const CONNECTIONS_MAX: usize = 1024;
