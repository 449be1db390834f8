//! The commands that a server has run, and their instructions when another server runs them again, one after another and
//! without anything else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use swirl_servers::RedisServer;

type Words = Vec<Vec<u8>>;

/// A command, and those that it ran as a function.
pub struct Recorded {
    pub words: Words,
    pub inner: Vec<Words>,
}

impl Recorded {
    pub fn is(&self, names: &[&str]) -> bool {
        is(&self.words, names)
    }
}

/// Whether a command has one of these names.
pub fn is(words: &Words, names: &[&str]) -> bool {
    let name = words.first().map_or(&[][..], Vec::as_slice);
    names
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// Records the commands of a server.
pub struct Recorder {
    monitor: Child,
}

impl Recorder {
    pub fn start(server: &RedisServer) -> Result<Recorder> {
        let mut monitor = Command::new("redis-cli")
            .args(["-p", &server.port().to_string(), "MONITOR"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut first = [0; 3];
        let output = monitor.stdout.as_mut().context("no output")?;
        output.read_exact(&mut first)?;
        anyhow::ensure!(&first == b"OK\n", "MONITOR is refused");
        Ok(Recorder { monitor })
    }

    /// The commands up to one with this name.
    pub fn until(mut self, last: &str) -> Result<Vec<Recorded>> {
        let output = self.monitor.stdout.take().context("no output")?;
        let mut commands: Vec<Recorded> = Vec::new();
        for line in BufReader::new(output).lines() {
            let line = line?;
            let (head, words) = line.split_once("] ").context("a line without a client")?;
            let words = words_of(words.as_bytes());
            if is(&words, &[last]) {
                break;
            }
            match commands.last_mut().filter(|_| head.ends_with(" lua")) {
                Some(outer) => outer.inner.push(words),
                None => commands.push(Recorded {
                    words,
                    inner: Vec::new(),
                }),
            }
        }
        self.monitor.kill()?;
        self.monitor.wait()?;
        Ok(commands)
    }
}

/// Words in quotes, as MONITOR writes them.
fn words_of(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = text.iter().copied();
    while bytes.by_ref().any(|byte| byte == b'"') {
        let mut word = Vec::new();
        loop {
            match bytes.next() {
                None | Some(b'"') => break,
                Some(b'\\') => word.push(match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b't') => b'\t',
                    Some(b'a') => 7,
                    Some(b'b') => 8,
                    Some(b'x') => {
                        let digits = [bytes.next(), bytes.next()].map(|digit| {
                            let digit = digit.and_then(|digit| char::from(digit).to_digit(16));
                            digit.unwrap_or_default() as u8
                        });
                        16 * digits[0] + digits[1]
                    }
                    other => other.unwrap_or_default(),
                }),
                Some(byte) => word.push(byte),
            }
        }
        words.push(word);
    }
    words
}

/// Runs commands on a server.
pub struct Player(BufReader<TcpStream>);

impl Player {
    pub fn new(server: &RedisServer) -> Result<Player> {
        let stream = TcpStream::connect(server.address())?;
        stream.set_nodelay(true)?;
        Ok(Player(BufReader::new(stream)))
    }

    pub fn run(&mut self, words: &[Vec<u8>]) -> Result<()> {
        let mut out = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            out.extend(format!("${}\r\n", word.len()).bytes());
            out.extend(word);
            out.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&out)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<()> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let (kind, rest) = line.trim_end().split_at_checked(1).context("no answer")?;
        match kind {
            "-" => bail!("{rest}"),
            "$" if rest != "-1" => {
                let mut bytes = vec![0; rest.parse::<usize>()? + 2];
                self.0.read_exact(&mut bytes)?;
            }
            "*" if rest != "-1" => {
                for _ in 0..rest.parse()? {
                    self.answer()?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
