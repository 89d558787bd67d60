//! Calls into a node, in milliseconds.
//!
//! `rabbitmqctl` starts an Erlang machine for every call, which costs most of a second on an idle machine and many on
//! a busy one. `erl_call`, a small program of Erlang itself, sends an expression to a running node.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;

use super::node::{COOKIE, Node};

/// How long an expression may run.
const PATIENCE: Duration = Duration::from_mins(1);

/// Makes of a list of property lists what an encoder of JSON understands: the name of a resource for the resource, a
/// list for the name, the type and the value of an argument.
const PLAIN: &str = "fun Plain(Term) -> case Term of \
    {resource, _, _, Name} -> Name; \
    {Name, Type, Value} when is_binary(Name), is_atom(Type) -> [Name, Type, Plain(Value)]; \
    _ when is_list(Term) -> [Plain(Part) || Part <- Term]; \
    _ when is_atom(Term); is_binary(Term); is_number(Term) -> Term; \
    _ -> iolist_to_binary(io_lib:format(\"~0p\", [Term])) \
    end end";

/// Makes of a binary a list of strings of hexadecimal digits: the program shortens a long binary and writes a string
/// in full, up to the length at which Erlang sends a list instead.
const HEX: &str = "fun Split([]) -> []; \
    Split(Digits) -> {Part, Rest} = lists:split(min(length(Digits), 60000), Digits), [Part | Split(Rest)] end";

impl Node {
    /// Evaluates Erlang expressions on the node and gives the value of the last, as Erlang writes it.
    pub async fn eval(&self, expressions: &str) -> String {
        self.try_eval(expressions).await.unwrap_or_else(|error| panic!("{expressions}: {error}"))
    }

    /// [`Node::eval`] for what may fail.
    ///
    /// # Errors
    ///
    /// What the node, or the program that calls it, says instead of a value.
    pub async fn try_eval(&self, expressions: &str) -> Result<String, String> {
        let expressions = expressions.trim().trim_end_matches('.');
        self.bytes_of(&format!("unicode:characters_to_binary(io_lib:format(\"~0tp\", [begin {expressions} end]))"))
            .await
    }

    /// What an expression for a list of property lists gives.
    pub(super) async fn table<T: DeserializeOwned>(&self, expression: &str) -> Vec<T> {
        let json = format!(
            "begin Plain = {PLAIN}, iolist_to_binary(rabbit_json:encode(\
             [maps:from_list([{{Key, Plain(Value)}} || {{Key, Value}} <- Row]) || Row <- {expression}])) end"
        );
        let json = self.bytes_of(&json).await.unwrap_or_else(|error| panic!("{expression}: {error}"));
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{expression} gives {json}: {error}"))
    }

    /// The text of the binary that `expression` gives.
    async fn bytes_of(&self, expression: &str) -> Result<String, String> {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        // A node turns a caller away while it still knows another of the same name, and the program itself gives always the same.
        let caller = format!("call-{}-{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
        let address = format!("127.0.0.1:{}", self.distribution_port());
        let mut command = self.command("erl_call");
        command.args(["-address", &address, "-c", COOKIE, "-h", &caller, "-e"]);
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let call = async {
            let mut child = command.spawn()?;
            let mut input = child.stdin.take().expect("stdin was asked for");
            let whole = format!("({HEX})(binary_to_list(binary:encode_hex({expression}))).\n");
            input.write_all(whole.as_bytes()).await?;
            drop(input);
            child.wait_with_output().await
        };
        let output = tokio::time::timeout(PATIENCE, call).await.map_err(|_| format!("no end after {PATIENCE:?}"))?;
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let bytes = bytes(&text).ok_or_else(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))?;
        String::from_utf8(bytes).map_err(|error| error.to_string())
    }
}

/// The bytes in `{ok, ["4869", "21"]}`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let parts = text.trim().strip_prefix("{ok, [")?.strip_suffix("]}")?;
    let digits: Vec<_> = parts.chars().filter(|part| !matches!(part, '"' | ',' | ' ')).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).ok();
    digits.chunks(2).map(byte).collect()
}

/// `text` as an Erlang binary; no character of it means anything to Erlang.
pub(super) fn quoted(text: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("<<{}>>", bytes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hexadecimal_digits_are_a_value() {
        assert_eq!(bytes("{ok, [\"4869\", \"21\"]}\n"), Some(b"Hi!".to_vec()));
        assert_eq!(bytes("{ok, []}"), Some(Vec::new()));
        assert_eq!(bytes("{ok, [\"xy\"]}"), None);
        assert_eq!(bytes("{error, nodedown}"), None);
        assert_eq!(quoted("\"}"), "<<34,125>>");
    }
}
