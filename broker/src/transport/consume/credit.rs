//! How much of a member's credit the broker may use at a time.

/// Messages that may be on their way to one stream.
const MESSAGES_MAX: u32 = 1000;
/// Bytes of messages that may be on their way to one stream; one message more may be let in below it.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A member may give credit without bound; what is granted but not yet taken by the stream has to fit memory. So the
/// credit is handed to the broker in bounded portions, as deliveries leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CreditLine {
    /// Given by the member, not yet to the broker.
    messages: u64,
    bytes: u64,
    /// Given to the broker, not yet used.
    messages_out: u32,
    bytes_out: u64,
}

impl CreditLine {
    /// The member lets so much more come.
    pub(super) const fn give(&mut self, messages: u32, bytes: u64) {
        self.messages = self.messages.saturating_add(messages as u64);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// So much has come.
    pub(super) const fn used(&mut self, messages: u32, bytes: u64) {
        self.messages_out = self.messages_out.saturating_sub(messages);
        self.bytes_out = self.bytes_out.saturating_sub(bytes);
    }

    /// What the broker may be given now; it counts as given.
    pub(super) fn portion(&mut self) -> Option<(u32, u64)> {
        let messages = u64::from(MESSAGES_MAX.saturating_sub(self.messages_out)).min(self.messages);
        let bytes = BYTES_MAX.saturating_sub(self.bytes_out).min(self.bytes);
        if messages == 0 && bytes == 0 {
            return None;
        }
        self.messages -= messages;
        self.bytes -= bytes;
        let messages = u32::try_from(messages).unwrap_or(MESSAGES_MAX);
        self.messages_out += messages;
        self.bytes_out += bytes;
        Some((messages, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_credit_passes_whole_and_once() {
        let mut line = CreditLine::default();
        assert_eq!(line.portion(), None);
        line.give(10, 4096);
        assert_eq!(line.portion(), Some((10, 4096)));
        assert_eq!(line.portion(), None);
    }

    #[test]
    fn credit_without_bound_is_handed_on_in_portions_as_deliveries_leave() {
        let mut line = CreditLine::default();
        line.give(u32::MAX, u64::MAX);
        assert_eq!(line.portion(), Some((MESSAGES_MAX, BYTES_MAX)));
        assert_eq!(line.portion(), None);
        line.used(3, 100);
        assert_eq!(line.portion(), Some((3, 100)));
    }

    #[test]
    fn a_message_larger_than_what_was_left_costs_what_was_left() {
        let mut line = CreditLine::default();
        line.give(2, 100);
        assert_eq!(line.portion(), Some((2, 100)));
        line.used(1, 5000);
        line.give(0, 50);
        assert_eq!(line.portion(), Some((0, 50)));
    }
}
