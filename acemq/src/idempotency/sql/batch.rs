use std::{collections::BTreeMap, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    backend::Backend,
    error::Failure,
    lanes::{Answer, Caller, Waiting},
    op::{Group, Item, Kind, Op, Verdict},
    store::Inner,
};
use crate::idempotency::StoreError;

/// How often a statement is tried before the others have won; with keys in order one try is the rule.
const TRIES: u32 = 5;

impl<D: Backend> Inner<D> {
    /// Carries one operation out, and waits for whoever has locked its entry.
    pub(super) async fn carry_one(&self, op: &Op) -> Answer {
        let group = [Ask::of(op).alone()];
        let patiently = self.patiently(|| async {
            match self.carry_once(&group).await {
                Err(Failure::Locked(why)) => Err(Failure::Retry(why)),
                other => other,
            }
        });
        self.lone_answer(patiently.await)
    }

    /// Carries operations out in as few statements as can be, and tells each caller as soon as its answer is known.
    pub(super) async fn carry(&self, waiting: Vec<Waiting>) {
        let (ops, callers) = Waiting::apart(waiting);
        let mut batch = Batch::new(&ops, callers);
        let mut alone = Vec::new();
        let together = groups(batch.leaders.clone());
        // Each unit is tried again by itself: what is done is not done twice because something else failed.
        let size = if D::JOINT { together.len().max(1) } else { 1 };
        for unit in together.chunks(size) {
            alone.extend(self.carry_unit(unit, &mut batch).await);
        }
        self.carry_alone(alone, &mut batch).await;
        for group in groups(batch.open()) {
            let held = self.look(&group, &mut batch).await;
            self.carry_alone(held, &mut batch).await;
        }
    }

    /// Has those left over that have to be carried out by themselves.
    async fn carry_unit<'a>(&self, unit: &[Group<'a>], batch: &mut Batch<'a>) -> Vec<Ask<'a>> {
        let asks: Vec<_> = unit.iter().flat_map(Ask::all_of).collect();
        match self.patiently(|| self.carry_once(unit)).await {
            Ok(verdicts) => batch.learn(asks.into_iter().zip(verdicts.into_iter().map(Ok))),
            // One of them is to blame. By themselves, the others get their answers.
            Err(Failure::Locked(_) | Failure::Row(_)) if asks.len() > 1 => return asks,
            Err(failure) => batch.fail(asks, &self.failed(failure)),
        }
        Vec::new()
    }

    /// Carries out one by one what somebody waits for. An entry that is locked keeps the others waiting, so it is tried once.
    async fn carry_alone<'a>(&self, asks: Vec<Ask<'a>>, batch: &mut Batch<'a>) {
        for ask in asks {
            if batch.wants(&ask) {
                let group = [ask.alone()];
                let answer = self.lone_answer(self.patiently(|| self.carry_once(&group)).await);
                batch.learn([(ask, answer)]);
            }
        }
    }

    /// Finds the claims whose keys their tokens hold already, which are to be carried out; the others are told.
    async fn look<'a>(&self, group: &Group<'a>, batch: &mut Batch<'a>) -> Vec<Ask<'a>> {
        match self.patiently(|| D::look(self, &group.items)).await {
            Ok(verdicts) => {
                let found: Vec<_> = Ask::all_of(group).zip(verdicts).collect();
                let (held, others): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|(_, found)| *found == Verdict::Mine);
                batch.learn(others.into_iter().map(|(ask, _)| (ask, Ok(Verdict::Other))));
                held.into_iter().map(|(ask, _)| ask).collect()
            }
            Err(failure) => {
                batch.fail(Ask::all_of(group), &self.failed(failure));
                Vec::new()
            }
        }
    }

    async fn carry_once(&self, unit: &[Group<'_>]) -> Result<Vec<Verdict>, Failure> {
        match D::carry(self, unit).await {
            // Whoever holds the row is about to settle it: asking again later costs less than waiting here.
            Err(Failure::Locked(_)) if matches!(unit, [group] if group.is_lone_claim()) => Ok(vec![Verdict::Other]),
            other => other,
        }
    }

    fn lone_answer(&self, verdicts: Result<Vec<Verdict>, Failure>) -> Answer {
        let verdicts = verdicts.map_err(|failure| self.failed(failure))?;
        Ok(verdicts.first().copied().unwrap_or(Verdict::Other))
    }

    /// Deletes up to `most` ended entries in one statement.
    pub(super) async fn purge_some(&self, most: usize) -> Result<usize, Failure> {
        self.within_limit(self.patiently(|| D::purge(self, most))).await
    }

    /// Tries again what has lost against others or lost its connection, a limited number of times.
    async fn patiently<T, F>(&self, work: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut cut = false;
        let mut tried = 1;
        loop {
            match work().await {
                Err(Failure::Retry(_)) if tried < TRIES => {
                    let most = 1 << tried;
                    sleep(Duration::from_millis(rand::random_range(0..=most))).await;
                    tried += 1;
                }
                // The tokens make it safe: what the lost connection has done is recognised as one's own.
                Err(Failure::Cut(_)) if !cut => cut = true,
                other => return other,
            }
        }
    }

    /// Ends in time, whatever it is that the database does not answer.
    pub(super) async fn within_limit<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let limit = self.settings.timeout;
        timeout(limit, work)
            .await
            .unwrap_or_else(|_| Err(Failure::Unreachable(format!("the database gave no answer within {limit:?}"))))
    }
}

/// An operation as a statement sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ask<'a> {
    kind: Kind,
    millis: i64,
    item: Item<'a>,
}

impl<'a> Ask<'a> {
    fn of(op: &'a Op) -> Self {
        Self { kind: op.kind, millis: op.millis, item: Item { key: &op.key, token: &op.token } }
    }

    fn alone(&self) -> Group<'a> {
        Group { kind: self.kind, millis: self.millis, items: vec![self.item] }
    }

    fn all_of(group: &Group<'a>) -> impl Iterator<Item = Self> {
        group.items.iter().map(|item| Self { kind: group.kind, millis: group.millis, item: *item })
    }
}

/// What is carried out together, and who waits for it. Whoever is told nothing in the end asks again.
#[derive(Debug)]
struct Batch<'a> {
    asks: Vec<Ask<'a>>,
    leaders: Vec<Ask<'a>>,
    /// None is a caller that has been told.
    callers: Vec<Option<Caller>>,
    answers: BTreeMap<Ask<'a>, Answer>,
}

impl<'a> Batch<'a> {
    fn new(ops: &'a [Op], callers: Vec<Caller>) -> Self {
        let asks: Vec<_> = ops.iter().map(Ask::of).collect();
        let leaders = leaders(&asks);
        Self { asks, leaders, callers: callers.into_iter().map(Some).collect(), answers: BTreeMap::new() }
    }

    /// Takes answers in, and tells all callers whose answers follow from them.
    fn learn(&mut self, answers: impl IntoIterator<Item = (Ask<'a>, Answer)>) {
        self.answers.extend(answers);
        for ((ask, leader), waits) in self.asks.iter().zip(&self.leaders).zip(&mut self.callers) {
            let answer = match (self.answers.get(ask), self.answers.get(leader)) {
                (Some(own), _) => own,
                (None, Some(leaders)) if ask.item == leader.item => leaders,
                // A claim of the same key that came later sees the earlier one.
                (None, Some(Ok(Verdict::Mine))) => &Ok(Verdict::Other),
                // Somebody else has the key: that may be one who asks again for what is its own.
                (None, Some(Ok(Verdict::Other)) | None) => continue,
                (None, Some(leaders)) => leaders,
            };
            if let Some(caller) = waits.take() {
                caller.tell(answer.clone());
            }
        }
    }

    fn fail(&mut self, asks: impl IntoIterator<Item = Ask<'a>>, error: &StoreError) {
        self.learn(asks.into_iter().map(|ask| (ask, Err(error.clone()))));
    }

    /// Whether somebody waits for this, or it is to be done all the same.
    fn wants(&self, wanted: &Ask<'_>) -> bool {
        let mut waits = self.asks.iter().zip(&self.callers).filter(|(ask, _)| *ask == wanted);
        waits.any(|(ask, caller)| caller.as_ref().is_some_and(|caller| caller.wants(ask.kind)))
    }

    /// Those whose leaders have not got the key.
    fn open(&self) -> Vec<Ask<'a>> {
        let open = self.asks.iter().zip(&self.leaders).zip(&self.callers).filter(|((ask, leader), caller)| {
            caller.is_some() && ask != leader && self.answers.get(leader) == Some(&Ok(Verdict::Other))
        });
        open.map(|((ask, _), _)| *ask).collect()
    }
}

/// For each operation the one that stands for it in a statement.
///
/// Two claims of one key would be an error in one statement: the first one goes, whatever its length.
fn leaders<'a>(asks: &[Ask<'a>]) -> Vec<Ask<'a>> {
    let mut claims = BTreeMap::new();
    let leader = |ask: &Ask<'a>| match ask.kind {
        Kind::Claim => *claims.entry(ask.item.key).or_insert(*ask),
        _ => *ask,
    };
    asks.iter().map(leader).collect()
}

fn groups(mut asks: Vec<Ask<'_>>) -> Vec<Group<'_>> {
    // In one order everywhere: statements that lock the same rows then wait for each other and do not deadlock.
    asks.sort_unstable();
    asks.dedup();
    asks.chunk_by(|a, b| (a.kind, a.millis) == (b.kind, b.millis))
        .filter_map(|chunk| {
            let Ask { kind, millis, .. } = *chunk.first()?;
            Some(Group { kind, millis, items: chunk.iter().map(|ask| ask.item).collect() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: Kind, millis: i64, key: &str, token: &str) -> Op {
        Op { kind, millis, key: key.into(), token: token.into() }
    }

    #[test]
    fn groups_have_each_claimed_key_once_and_all_in_order() {
        let ops = [
            op(Kind::Claim, 5, "b", "1"),
            op(Kind::Claim, 5, "a", "2"),
            op(Kind::Claim, 5, "b", "3"),
            op(Kind::Claim, 7, "b", "4"),
            op(Kind::Claim, 7, "c", "5"),
            op(Kind::Confirm, 9, "b", "6"),
            op(Kind::Confirm, 9, "b", "7"),
            op(Kind::Confirm, 9, "b", "6"),
        ];
        let asks: Vec<_> = ops.iter().map(Ask::of).collect();
        let leaders = leaders(&asks);
        let texts: Vec<_> = groups(leaders.clone())
            .iter()
            .map(|group| {
                let items: Vec<_> = group.items.iter().map(|item| format!("{}{}", item.key, item.token)).collect();
                format!("{:?} {} {}", group.kind, group.millis, items.join(" "))
            })
            .collect();
        assert_eq!(texts, ["Confirm 9 b6 b7", "Claim 5 a2 b1", "Claim 7 c5"]);
        assert_eq!(leaders[3].item.token, "1");
        assert_eq!(leaders[7], leaders[5]);
    }
}
