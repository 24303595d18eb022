//! Texts of any shape: what is read never panics, and every fault has a place in the text.

use super::*;
use proptest::prelude::*;

fn places_are_within(text: &str) {
    if let Err(faults) = FileConfig::from_text(text) {
        assert!(!faults.is_empty());
        let lines = text.split('\n').count();
        for fault in faults {
            assert!(fault.line >= 1 && fault.column >= 1 && fault.line <= lines + 1, "{fault:?} in {text:?}");
            assert!(!fault.message.is_empty() && !fault.to_string().contains('\n'), "{fault:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        places_are_within(&text);
    }

    #[test]
    fn any_heap_of_yaml_signs_is_read_or_refused(text in r#"[\[\]{}:,&*!|>'"%@`#?\- \n\t~ab0]{0,200}"#) {
        places_are_within(&text);
    }

    #[test]
    fn the_example_with_a_piece_replaced_is_read_or_refused(at in 0..EXAMPLE.len(), len in 0..20_usize, piece in r#"[\[\]{}:,&*!|>'"%@`#?\- \n\ta-z0]{0,10}"#) {
        let end = (at + len).min(EXAMPLE.len());
        places_are_within(&format!("{}{piece}{}", &EXAMPLE[..at], &EXAMPLE[end..]));
    }

    #[test]
    fn a_value_of_any_kind_in_any_field_is_read_or_refused(
        channel in 0..CHANNEL_FIELDS.len(), setting in 0..SETTINGS.len(), value in r#"[\[\]{}'" a-z0-9._:-]{0,30}"#,
    ) {
        let (field, setting) = (CHANNEL_FIELDS[channel].key, SETTINGS[setting].key);
        places_are_within(&format!("internal_plane: [{{ {field}: {value} }}]\nbroker:\n  {setting}: {value}\n"));
    }
}
