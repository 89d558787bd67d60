//! A constant for each value and a constant for each check.
//!
//! A value and its check are apart, because a constant that fails takes down whoever uses it: values can be evaluated
//! whatever was written, and each check fails alone, on its own value.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::Expr;

use crate::{
    args::{Idempotent, Options},
    blame,
    names::Names,
    retry::{Common, Retry},
    values::Length,
};

/// What is generated from the options: items, and the fields of the consumer's settings.
pub(crate) struct Constants<'a> {
    names: &'a Names,
    acemq: Ident,
    pub(crate) items: TokenStream,
    pub(crate) fields: TokenStream,
    pub(crate) queue: TokenStream,
    /// The name for people, if one is given.
    pub(crate) title: Option<TokenStream>,
    retry: TokenStream,
    related: Related,
}

/// Whether values are checked against each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Related {
    Checked,
    /// Some are mistaken already: what follows from them is no mistake of its own.
    Unknown,
}

/// A length of time that may be malformed.
struct Measured {
    /// Its value; malformed, it fails there.
    exact: TokenStream,
    /// `Option<Duration>`, never failing.
    known: TokenStream,
    /// Its value, or the one in the parentheses; never failing.
    or: Box<dyn Fn(TokenStream) -> TokenStream>,
}

impl<'a> Constants<'a> {
    /// Everything that follows from the options.
    pub(crate) fn new(options: &Options, names: &'a Names) -> Self {
        Self::with(options, names, Related::Checked)
    }

    /// The values among mistaken ones, each checked by itself.
    pub(crate) fn apart(options: &Options, names: &'a Names) -> Self {
        Self::with(options, names, Related::Unknown)
    }

    fn with(options: &Options, names: &'a Names, related: Related) -> Self {
        let acemq = names.acemq();
        let mut constants = Self {
            names,
            retry: quote!(#acemq::RetryPolicy::DEFAULT),
            acemq,
            items: TokenStream::new(),
            fields: TokenStream::new(),
            queue: TokenStream::new(),
            title: None,
            related,
        };
        constants.retry(options);
        constants.queue(options.queue.as_ref());
        constants.limits(options);
        constants.declarations(options);
        if let Some(idempotent) = &options.idempotent {
            constants.idempotent(idempotent);
        }
        if let Some(title) = &options.name {
            let name = constants.constant("NAME", quote!(&str), title);
            constants.check("name", quote!(#name), title);
            constants.title = Some(quote!(#name));
        }
        constants
    }

    /// A constant of this type; gives back its name.
    fn constant(&mut self, name: &str, kind: impl ToTokens, value: impl ToTokens) -> Ident {
        let name = self.names.item(name);
        self.items.extend(quote!(const #name: #kind = #value;));
        name
    }

    /// A check that is to be blamed on `value`.
    fn check(&mut self, check: &str, arguments: TokenStream, value: &impl ToTokens) {
        let acemq = &self.acemq;
        let check = format_ident!("{check}");
        let call = blame::call(quote!(#acemq::check::#check), arguments, value);
        self.items.extend(quote!(const _: () = #call;));
    }

    fn field(&mut self, name: &str, value: impl ToTokens) {
        let name = format_ident!("{name}");
        self.fields.extend(quote!(#name: #value,));
    }

    fn length(&mut self, name: &str, value: &Length) -> Measured {
        let acemq = self.acemq.clone();
        match value {
            Length::Text(text) => {
                let known = self.constant(name, quote!(#acemq::Option<#acemq::Duration>), quote!(#acemq::parse(#text)));
                Measured {
                    exact: blame::call(quote!(#acemq::duration), quote!(#text), text),
                    known: quote!(#known),
                    or: Box::new(move |otherwise| quote!(#acemq::or(#known, #otherwise))),
                }
            }
            Length::Constant(value) => {
                let name = self.constant(name, quote!(#acemq::Duration), value);
                Measured {
                    exact: quote!(#name),
                    known: quote!(#acemq::Option::Some(#name)),
                    or: Box::new(move |_| quote!(#name)),
                }
            }
        }
    }

    fn queue(&mut self, queue: Option<&Expr>) {
        let Some(queue) = queue else { return };
        let name = self.constant("QUEUE", quote!(&str), queue);
        self.check("queue", quote!(#name), queue);
        let retry = self.related_retry();
        self.check("derived", quote!(#name, &#retry), queue);
        self.queue = quote!(#name);
    }

    fn retry(&mut self, options: &Options) {
        let acemq = self.acemq.clone();
        let retry = self.names.item("RETRY");
        let policy = match &options.retry {
            None => match &options.retry_delay {
                None => return,
                Some(delay) => {
                    let measured = self.length("RETRY_DELAY", delay);
                    let (exact, known) = (measured.exact, measured.known);
                    self.check("delay", quote!(#exact, &#retry), delay);
                    quote!(#acemq::unbounded(#known))
                }
            },
            Some(Retry::None) => quote!(#acemq::RetryPolicy::none()),
            Some(Retry::Constant(policy)) => {
                self.check("policy", quote!(&#retry), policy);
                policy.to_token_stream()
            }
            Some(Retry::Fixed { attempts, delay, common }) => {
                let attempts = self.attempts(attempts);
                let measured = self.length("DELAY", delay);
                let (exact, known) = (measured.exact, measured.known);
                self.check("delay", quote!(#exact, &#retry), delay);
                let settings = self.common(common, &retry);
                quote!(#acemq::fixed(#attempts, #known)#settings)
            }
            Some(Retry::Exponential { attempts, initial, max, common }) => {
                let attempts = self.attempts(attempts);
                let first = self.length("INITIAL", initial);
                let exact = first.exact;
                self.check("delay", quote!(#exact, &#retry), initial);
                let cap = self.length("MAX", max);
                let (exact, first, known) = (cap.exact, first.known, cap.known);
                self.check("cap", quote!(#exact, #first, &#retry), max);
                let settings = self.common(common, &retry);
                quote!(#acemq::exponential(#attempts, #first, #known)#settings)
            }
        };
        self.constant("RETRY", quote!(#acemq::RetryPolicy), policy);
        self.field("retry", &retry);
        self.retry = quote!(#retry);
    }

    /// The policy that other values are checked against.
    fn related_retry(&self) -> TokenStream {
        match self.related {
            Related::Checked => self.retry.clone(),
            Related::Unknown => {
                let acemq = &self.acemq;
                quote!(#acemq::RetryPolicy::none())
            }
        }
    }

    fn attempts(&mut self, attempts: &Expr) -> Ident {
        let name = self.constant("ATTEMPTS", quote!(u32), attempts);
        self.check("attempts", quote!(#name), attempts);
        name
    }

    /// The settings of any policy, as calls that follow its construction.
    fn common(&mut self, common: &Common, retry: &Ident) -> TokenStream {
        let acemq = self.acemq.clone();
        let mut calls = TokenStream::new();
        if let Some(share) = &common.jitter {
            let name = self.constant("JITTER", quote!(f64), share);
            self.check("jitter", quote!(#name), share);
            calls.extend(quote!(.with_jitter(#name)));
        }
        if let Some(age) = &common.give_up_after {
            let measured = self.length("GIVE_UP_AFTER", age);
            let exact = measured.exact;
            self.check("give_up_after", quote!(#exact, &#retry), age);
            let age = (measured.or)(quote!(#acemq::MOMENT));
            calls.extend(quote!(.give_up_after(#age)));
        }
        if let Some(threshold) = &common.wait_in_broker_from {
            let measured = self.length("WAIT_IN_BROKER_FROM", threshold);
            let exact = measured.exact;
            self.check("wait_in_broker_from", quote!(#exact, &#retry), threshold);
            let threshold = (measured.or)(quote!(#acemq::Duration::ZERO));
            calls.extend(quote!(.wait_in_broker_from(#threshold)));
        }
        calls
    }

    fn limits(&mut self, options: &Options) {
        let acemq = self.acemq.clone();
        let mut most = match self.related {
            Related::Checked => quote!(#acemq::ConsumerSpec::PREFETCH),
            Related::Unknown => quote!(65_535),
        };
        if let Some(prefetch) = &options.prefetch {
            let name = self.constant("PREFETCH", quote!(u16), prefetch);
            self.check("prefetch", quote!(#name), prefetch);
            self.field("prefetch", &name);
            if options.concurrency.is_none() {
                self.field("concurrency", &name);
            }
            most = quote!(#name);
        }
        if let Some(concurrency) = &options.concurrency {
            let name = self.constant("CONCURRENCY", quote!(u16), concurrency);
            self.check("concurrency", quote!(#name, #most), concurrency);
            self.field("concurrency", &name);
        }
        if let Some(timeout) = &options.timeout {
            let measured = self.length("TIMEOUT", timeout);
            let (exact, retry) = (measured.exact, self.related_retry());
            self.check("timeout", quote!(#exact, &#retry), timeout);
            self.field("timeout", measured.known);
        }
    }

    fn declarations(&mut self, options: &Options) {
        let acemq = self.acemq.clone();
        if let Some(kind) = options.declare.map(variant) {
            self.field("declare", quote!(#acemq::Option::Some(#acemq::QueueKind::#kind)));
        }
        if let Some(kind) = options.rungs.map(variant) {
            self.field("rungs", quote!(#acemq::Option::Some(#acemq::RungKind::#kind)));
        }
        if options.bind.is_empty() {
            return;
        }
        let mut names = Vec::new();
        for (place, (exchange, routing_key)) in options.bind.iter().enumerate() {
            let bind = quote!(#acemq::Bind { exchange: #exchange, routing_key: #routing_key });
            let name = self.constant(&format!("BIND_{}", place + 1), quote!(#acemq::Bind), bind);
            self.check("bind", quote!(&#name), exchange);
            names.push(name);
        }
        self.field("bind", quote!(&[#(#names),*]));
    }

    fn idempotent(&mut self, idempotent: &Idempotent) {
        let acemq = self.acemq.clone();
        let default = quote!(#acemq::Idempotent::DEFAULT);
        let retry = self.related_retry();
        let mut fields = TokenStream::new();
        let mut claimed = match self.related {
            Related::Checked => quote!(#acemq::Option::Some(#default.claim)),
            Related::Unknown => quote!(#acemq::Option::None),
        };
        if let Some(claim) = &idempotent.claim {
            let measured = self.length("CLAIM", claim);
            let (exact, value) = (measured.exact, (measured.or)(quote!(#default.claim)));
            self.check("claim", exact, claim);
            fields.extend(quote!(claim: #value,));
            claimed = measured.known;
            if idempotent.in_progress_delay.is_none() {
                let arguments = quote!(#default.in_progress_delay, #claimed);
                self.check("in_progress_delay", arguments, claim);
            }
        }
        if let Some(delay) = &idempotent.in_progress_delay {
            let measured = self.length("IN_PROGRESS_DELAY", delay);
            let (exact, value) = (measured.exact, (measured.or)(quote!(#default.in_progress_delay)));
            self.check("in_progress_delay", quote!(#exact, #claimed), delay);
            fields.extend(quote!(in_progress_delay: #value,));
        }
        match &idempotent.retention {
            Some(retention) => {
                let measured = self.length("RETENTION", retention);
                let (exact, value) = (measured.exact, (measured.or)(quote!(#default.retention)));
                self.check("retention", quote!(#exact, &#retry), retention);
                fields.extend(quote!(retention: #value,));
            }
            None => self.check("retention", quote!(#default.retention, &#retry), &idempotent.word),
        }
        if let Some(scope) = idempotent.scope.map(variant) {
            fields.extend(quote!(scope: #acemq::Scoped::#scope,));
        }
        if let Some(no_id) = idempotent.no_id.map(variant) {
            fields.extend(quote!(no_id: #acemq::NoId::#no_id,));
        }
        if let Some(store) = &idempotent.store {
            let name = self.constant("STORE", quote!(&str), store);
            self.check("store", quote!(#name), store);
            fields.extend(quote!(store: #acemq::Option::Some(#name),));
        }
        if idempotent.key.is_some() {
            let key = self.names.item("key");
            fields.extend(quote!(key: #acemq::Option::Some(#key),));
        }
        self.field("idempotent", quote!(#acemq::Option::Some(#acemq::Idempotent { #fields ..#default })));
    }
}

/// The variant of an enum that a word of the attribute stands for.
fn variant(word: &'static str) -> Ident {
    match word {
        "quorum" => format_ident!("Quorum"),
        "classic" => format_ident!("Classic"),
        "queue" => format_ident!("Queue"),
        "shared" => format_ident!("Shared"),
        "run" => format_ident!("Run"),
        _ => format_ident!("Park"),
    }
}
