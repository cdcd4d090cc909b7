//! A text cut into YAML documents, so that those nobody touches come out byte for byte.
//!
//! In: a whole stream. Out: segments whose concatenation is the stream. A line that begins with `---` or `...` ends a document
//! wherever it stands (YAML 1.2, 9.1.2), also inside a block scalar, so cutting needs no parser. JSON documents
//! that simply follow each other, as `kubectl get -o json` chains give, are cut as well.

/// A piece of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Marker lines and directives between documents.
    Marker(&'a str),
    /// A document (perhaps only comments).
    Document {
        /// Its text.
        text: &'a str,
        /// Lines of the stream before it.
        lines_before: u64,
    },
}

/// Cuts the stream; the texts of the segments, joined, are `text`.
#[must_use]
pub fn split(text: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut start = 0;
    let mut lines_before = 0;
    let mut offset = 0;
    for (line_number, mut line) in (0u64..).zip(text.split_inclusive('\n')) {
        // A byte order mark may stand at the head of any document, as where files were joined.
        if let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_ahead(&text[start..offset])) {
            push_document(&mut segments, &text[start..offset], lines_before);
            let mark = line.len() - rest.len();
            segments.push(Segment::Marker(&text[offset..offset + mark]));
            (line, offset) = (rest, offset + mark);
            (start, lines_before) = (offset, line_number);
        }
        if let Some(marker) = marker_length(line, &text[start..offset]) {
            push_document(&mut segments, &text[start..offset], lines_before);
            segments.push(Segment::Marker(&text[offset..offset + marker]));
            start = offset + marker;
            lines_before = if marker == line.len() { line_number + 1 } else { line_number };
        }
        offset += line.len();
    }
    push_document(&mut segments, &text[start..], lines_before);
    segments
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whether a document that has only this so far has not begun.
fn is_ahead(before: &str) -> bool {
    leading_comments(before).len() == before.len()
}

/// Length of the marker this line begins with: the whole line, or three bytes when content follows on it. `before` is what the document
/// has so far; where it has begun, `%` is content.
fn marker_length(line: &str, before: &str) -> Option<usize> {
    if line.starts_with('%') && is_ahead(before) {
        return Some(line.len());
    }
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."))?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t', '\r', '\n']) {
        return None;
    }
    let content = rest.trim();
    Some(if content.is_empty() || content.starts_with('#') { line.len() } else { 3 })
}

fn push_document<'a>(segments: &mut Vec<Segment<'a>>, text: &'a str, lines_before: u64) {
    if text.is_empty() {
        return;
    }
    let mut rest = text;
    let mut before = lines_before;
    if text.trim_start().starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
        let mut ends = Vec::new();
        while let Some(value) = values.next() {
            if value.is_err() {
                ends.clear();
                break;
            }
            ends.push(values.byte_offset());
        }
        let mut start = 0;
        for end in ends.iter().take(ends.len().saturating_sub(1)) {
            let piece = &text[start..*end];
            segments.push(Segment::Document { text: piece, lines_before: before });
            before += count_lines(piece);
            start = *end;
        }
        rest = &text[start..];
    }
    segments.push(Segment::Document { text: rest, lines_before: before });
}

fn count_lines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// The comment and empty lines a document begins with.
#[must_use]
pub fn leading_comments(text: &str) -> &str {
    let length: usize = text
        .split_inclusive('\n')
        .take_while(|line| {
            let line = line.trim_start();
            line.trim_end().is_empty() || line.starts_with('#')
        })
        .map(str::len)
        .sum();
    &text[..length]
}
