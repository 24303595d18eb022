//! `cursors`: `group number: u32, channel number: u64` -> [`CursorRow`]. What of the channel the group is through with.
//! Missing: nothing yet, from the group's start. Written when a settle moved it.

use crate::model::{ChannelNo, GroupNo, Offset};
use roaring::RoaringTreemap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// All below `floor` is through (settled, gone, or before the group's start), and so is `above`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CursorRow {
    /// The first offset the group ever read.
    pub(crate) start: Offset,
    pub(crate) floor: Offset,
    #[serde(serialize_with = "write_bitmap", deserialize_with = "read_bitmap")]
    pub(crate) above: RoaringTreemap,
}

impl CursorRow {
    pub(crate) fn starting_at(start: Offset) -> Self {
        Self { start, floor: start, above: RoaringTreemap::new() }
    }

    /// Marks `offset` as through.
    pub(crate) fn pass(&mut self, offset: Offset) {
        if offset != self.floor {
            if offset > self.floor {
                self.above.insert(offset.get());
            }
            return;
        }
        let mut floor = offset.get() + 1;
        while self.above.remove(floor) {
            floor += 1;
        }
        self.floor = Offset(floor);
    }

    pub(crate) fn is_through(&self, offset: Offset) -> bool {
        offset < self.floor || self.above.contains(offset.get())
    }

    /// Messages below `head` that are not through.
    pub(crate) fn unsettled(&self, head: Offset) -> u64 {
        head.get().saturating_sub(self.floor.get()).saturating_sub(self.above.len())
    }
}

fn write_bitmap<S: Serializer>(bitmap: &RoaringTreemap, serializer: S) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).map_err(serde::ser::Error::custom)?;
    serializer.serialize_bytes(&bytes)
}

fn read_bitmap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RoaringTreemap, D::Error> {
    let bytes = Vec::<u8>::deserialize(deserializer)?;
    let mut rest = bytes.as_slice();
    let bitmap = RoaringTreemap::deserialize_from(&mut rest).map_err(serde::de::Error::custom)?;
    if rest.is_empty() { Ok(bitmap) } else { Err(serde::de::Error::custom("bytes behind the bitmap")) }
}

pub(crate) fn cursor_key(group: GroupNo, channel: ChannelNo) -> Vec<u8> {
    let mut key = group.get().to_be_bytes().to_vec();
    key.extend_from_slice(&channel.get().to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::rows::{decode, encode};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_knows_what_it_passed_in_any_order(order in Just((0..60u64).collect::<Vec<_>>()).prop_shuffle(), n in 0..60usize) {
            let mut cursor = CursorRow::starting_at(Offset(0));
            for &offset in order.iter().take(n) {
                cursor.pass(Offset(offset));
                cursor.pass(Offset(offset));
            }
            for (i, &offset) in order.iter().enumerate() {
                prop_assert_eq!(cursor.is_through(Offset(offset)), i < n);
            }
            prop_assert_eq!(cursor.unsettled(Offset(60)), 60 - n as u64);
            let back: CursorRow = decode(&encode(&cursor).unwrap()).unwrap();
            prop_assert_eq!(back, cursor);
        }
    }

    #[test]
    fn bytes_behind_the_bitmap_are_refused() {
        // Version, start, floor, length of the bitmap, the bitmap.
        let mut value = encode(&CursorRow::starting_at(Offset(4))).unwrap();
        assert_eq!(value[3] as usize, value.len() - 4);
        value[3] += 1;
        value.push(0);
        assert!(decode::<CursorRow>(&value).is_err());
    }
}
