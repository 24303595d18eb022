//! Error reasons as they stand in `ErrorInfo.reason`.

use crate::v1::ErrorReason;

const PREFIX: &str = "ERROR_REASON_";

impl ErrorReason {
    /// The name in `ErrorInfo.reason`: `LEASE_LOST`.
    #[must_use]
    pub fn name(self) -> &'static str {
        let full = self.as_str_name();
        full.strip_prefix(PREFIX).unwrap_or(full)
    }

    /// The reason of that name; `None` if this version does not know it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_str_name(&format!("{PREFIX}{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_by_its_name() {
        assert_eq!(ErrorReason::LeaseLost.name(), "LEASE_LOST");
        assert_eq!(ErrorReason::from_name("LEASE_LOST"), Some(ErrorReason::LeaseLost));
        assert_eq!(ErrorReason::from_name("NO_SUCH_REASON"), None);
    }
}
