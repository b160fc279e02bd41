//! RFC 9110 §13 read naively: the steps of §13.2.2 as they are numbered, entity tags byte by byte, and dates by
//! formatting the moment that a date seems to be and comparing. Slow, and shares no code with the parser.

/// The fields of a request: names in lower case, and values.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// The status that results from the conditions of a GET or HEAD; 200 if they change nothing.
pub(crate) fn status(fields: &Fields, etag: Option<&[u8]>, modified: Option<u64>) -> u16 {
    // Step 1.
    if let Some(list) = combined(fields, "if-match") {
        if !(list == b"*"
            || named(&list)
                .iter()
                .any(|tag| strong(tag) && Some(tag.as_slice()) == etag))
        {
            return 412;
        }
    // Step 2.
    } else if let (Some(date), Some(modified)) = (moment(fields, "if-unmodified-since"), modified) {
        if modified > date {
            return 412;
        }
    }
    // Step 3.
    if let Some(list) = combined(fields, "if-none-match") {
        let current = etag.map(named).filter(|tags| tags.len() == 1);
        let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
        let current = current
            .map(|tags| opaque(&tags[0]))
            .filter(|_| etag.is_some_and(is_tag));
        let matches = named(&list).iter().any(|tag| Some(opaque(tag)) == current);
        return if list == b"*" || matches { 304 } else { 200 };
    }
    // Step 4.
    match (moment(fields, "if-modified-since"), modified) {
        (Some(date), Some(modified)) if modified <= date => 304,
        _ => 200,
    }
}

/// Step 5: returns true if Range applies.
pub(crate) fn range_permitted(fields: &Fields, etag: Option<&[u8]>, modified: Option<u64>) -> bool {
    let Some(value) = combined(fields, "if-range") else {
        return true;
    };
    // The first three characters distinguish a tag from a date.
    if value.iter().take(3).any(|&byte| byte == b'"') {
        is_tag(&value) && strong(&value) && Some(value.as_slice()) == etag
    } else {
        date(&value).is_some_and(|date| Some(date) == modified)
    }
}

/// RFC 9110 §5.3.
fn combined(fields: &Fields, name: &str) -> Option<Vec<u8>> {
    let values: Vec<&[u8]> = fields
        .iter()
        .filter(|field| field.0 == name)
        .map(|field| field.1.as_slice())
        .collect();
    (!values.is_empty()).then(|| values.join(b", ".as_slice()))
}

fn moment(fields: &Fields, name: &str) -> Option<u64> {
    date(&combined(fields, name)?)
}

fn strong(tag: &[u8]) -> bool {
    !tag.starts_with(b"W/")
}

fn is_tag(text: &[u8]) -> bool {
    named(text) == [text]
}

/// The position of a byte in a list.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Between,
    AfterW,
    AfterSlash,
    Inside,
    Behind,
}

/// The tags of a list; none if the list has a fault.
fn named(list: &[u8]) -> Vec<Vec<u8>> {
    use Place::*;
    let mut place = Between;
    let mut tags = Vec::new();
    let mut tag = Vec::new();
    for &byte in list {
        place = match (place, byte) {
            (Between | Behind, b' ' | b'\t') => place,
            (Between | Behind, b',') => Between,
            (Between, b'W') => AfterW,
            (AfterW, b'/') => AfterSlash,
            (Between | AfterSlash, b'"') => Inside,
            (Inside, b'"') => Behind,
            (Inside, 0x21 | 0x23..=0x7e | 0x80..=0xff) => Inside,
            _ => return Vec::new(),
        };
        match place {
            AfterW | AfterSlash | Inside => tag.push(byte),
            Behind if byte == b'"' => {
                tag.push(byte);
                tags.push(std::mem::take(&mut tag));
            }
            _ => {}
        }
    }
    if matches!(place, Between | Behind) {
        tags
    } else {
        Vec::new()
    }
}

const DAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

fn days_of_year(year: u64) -> u64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    365 + u64::from(leap)
}

fn days_of_month(year: u64, month: usize) -> u64 {
    match month {
        1 => days_of_year(year) - 337,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

/// A moment in all forms of RFC 9110 §5.6.7: IMF-fixdate, RFC 850, and asctime with a space or a zero.
pub(crate) fn forms(seconds: u64) -> [String; 4] {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut month, mut day) = (1970, 0, days);
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let (day, name, month, short) = (day + 1, DAYS[(days % 7) as usize], MONTHS[month], year % 100);
    let time = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
    let brief = &name[..3];
    [
        format!("{brief}, {day:02} {month} {year} {time} GMT"),
        format!("{name}, {day:02}-{month}-{short:02} {time} GMT"),
        format!("{brief} {month} {day:2} {time} {year}"),
        format!("{brief} {month} {day:02} {time} {year}"),
    ]
}

/// The moment of the date `text`.
pub(crate) fn date(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let seconds = guess(text)?;
    forms(seconds).iter().any(|form| form == text).then_some(seconds)
}

/// The moment that the words of `text` seem to be, with any separators.
fn guess(text: &str) -> Option<u64> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let month = words
        .iter()
        .find_map(|word| MONTHS.iter().position(|month| month == word))?;
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    // Only asctime has the year at the end.
    let (day, year, hour, minute, second) = match numbers[..] {
        [day, hour, minute, second, year] if !text.ends_with("GMT") => (day, year, hour, minute, second),
        [day, year, hour, minute, second] => (day, year, hour, minute, second),
        _ => return None,
    };
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    let sane = (1970..=9999).contains(&year) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let years: u64 = (1970..year).take_while(|_| sane).map(days_of_year).sum();
    let months: u64 = (0..month).map(|month| days_of_month(year, month)).sum();
    sane.then(|| (years + months + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second)
}
