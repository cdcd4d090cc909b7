//! Words of others as they may stand before people: in a status, an Event, a log, on a terminal.
//!
//! In: any text. Out: the same on one line, with everything written out that moves a cursor, hides, or turns the direction of reading. Promise: what
//! comes out holds no control character, no line break and nothing without a width, whatever went in.

use std::fmt::Write;

/// The text on one line, in at most `most` bytes; what is cut off is said by an ellipsis.
#[must_use]
pub fn printable(text: &str, most: usize) -> String {
    cut(written_out(text, false), most)
}

/// The text with its line breaks and tabs, and nothing else that is not seen; whole.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    written_out(text, true)
}

/// The first bytes of a text, with an ellipsis where there is more.
#[must_use]
pub fn cut(mut text: String, most: usize) -> String {
    const ELLIPSIS: char = '…';
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(ELLIPSIS.len_utf8())));
        if most >= ELLIPSIS.len_utf8() {
            text.push(ELLIPSIS);
        }
    }
    text
}

fn written_out(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' if lines => out.push(character),
            '\n' | '\r' | '\t' => out.push(' '),
            _ if is_unseen(character) => {
                // Into a String nothing fails.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

/// Control characters, marks of direction, and what has no width.
#[must_use]
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out() {
        assert_eq!(printable("ok\u{1b}[31mred\nnext\0", 100), "ok\\u{1b}[31mred next\\u{0}");
        assert_eq!(printable("a\u{202e}b\u{200b}c\u{feff}\u{e0041}", 100), "a\\u{202e}b\\u{200b}c\\u{feff}\\u{e0041}");
        assert_eq!(printable_lines("one\ntwo\r"), "one\ntwo\\u{d}".replace("\\u{d}", " "));
        assert_eq!(printable("Wetter für 北京 🌦", 100), "Wetter für 北京 🌦");
    }

    #[test]
    fn it_is_cut_at_a_character_and_says_so() {
        assert_eq!(printable("abcdef", 6), "abcdef");
        assert_eq!(printable("abcdefg", 6), "abc…");
        assert_eq!(printable("äöüß", 6), "ä…");
        assert_eq!(printable("abc", 2), "");
        for most in 0..40 {
            let out = printable(&"\u{202e}é".repeat(20), most);
            assert!(out.len() <= most && !out.chars().any(is_unseen), "{most}: {out}");
        }
    }
}
