//! A patch in base64, put together from pieces of which most were encoded before.
//!
//! In: JSON, piece by piece. Out: [`Encoded`]. Base64 makes four letters of three bytes, so a piece can be encoded
//! ahead of its use when it begins and ends between threes. JSON allows blanks around every value: a [`Piece`] is
//! filled up with them, and so is what stands before it. What is decoded is the same JSON with some blanks in it.
//! Most of an answer is the same for many Pods, and encoding it anew was a fourteenth of a review.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// JSON in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded(Vec<u8>);

impl Encoded {
    /// That of `json`.
    #[must_use]
    pub fn of(json: &[u8]) -> Self {
        Self(STANDARD.encode(json).into_bytes())
    }

    /// The letters.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// One JSON value in base64, fit to stand between others: its text and up to two blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece(String);

impl Piece {
    /// That of `json`, a whole value.
    #[must_use]
    pub fn of(mut json: Vec<u8>) -> Self {
        fill_up(&mut json);
        Self(STANDARD.encode(json))
    }
}

/// Blanks up to the next multiple of three bytes.
fn fill_up(text: &mut Vec<u8>) {
    text.resize(text.len().next_multiple_of(3), b' ');
}

/// Encodes JSON while it is written.
#[derive(Debug, Default)]
pub struct Encoder {
    done: Vec<u8>,
    waiting: Vec<u8>,
}

impl Encoder {
    /// With room for an encoded text of `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { done: Vec::with_capacity(bytes), waiting: Vec::with_capacity(bytes / 4) }
    }

    /// Where the text goes that is not encoded yet.
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Puts a value where the text that was written so far lets one stand.
    pub fn piece(&mut self, piece: &Piece) {
        fill_up(&mut self.waiting);
        self.encode_waiting();
        self.done.extend_from_slice(piece.0.as_bytes());
    }

    /// The whole text.
    #[must_use]
    pub fn finish(mut self) -> Encoded {
        self.encode_waiting();
        Encoded(self.done)
    }

    fn encode_waiting(&mut self) {
        let begin = self.done.len();
        self.done.resize(begin + self.waiting.len().div_ceil(3) * 4, 0);
        let written = STANDARD.encode_slice(&self.waiting, &mut self.done[begin..]).unwrap_or(0);
        self.done.truncate(begin + written);
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_is_the_same_json_wherever_the_pieces_stand() {
        for before in 0..4 {
            for value in ["1", "12", "\"a\"", r#"{"b":[" ",2]}"#, "[]"] {
                let name = "x".repeat(before);
                let mut encoder = Encoder::with_capacity(64);
                for opening in [b'[', b','] {
                    encoder.text().push(opening);
                    encoder.text().extend_from_slice(format!(r#"{{"{name}":"#).as_bytes());
                    encoder.piece(&Piece::of(value.into()));
                    encoder.text().push(b'}');
                }
                encoder.text().push(b']');
                let decoded = STANDARD.decode(encoder.finish().bytes()).unwrap();
                let expected = format!(r#"[{{"{name}":{value}}},{{"{name}":{value}}}]"#);
                let [decoded, expected] = [decoded.as_slice(), expected.as_bytes()]
                    .map(|json| serde_json::from_slice::<serde_json::Value>(json).unwrap());
                assert_eq!(decoded, expected, "{before} letters before {value}");
            }
        }
    }
}
