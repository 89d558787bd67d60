use std::{collections::BTreeMap, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    backend::Backend,
    error::Failure,
    lanes::{Answer, Waiting},
    op::{Group, Item, Kind, Op, Verdict},
    store::Inner,
};

/// How often a statement is tried before the others have won; with keys in order one try is the rule.
const TRIES: u32 = 5;

impl<D: Backend> Inner<D> {
    /// Carries one operation out.
    pub(super) async fn carry_one(&self, op: &Op) -> Answer {
        let Ask { kind, millis, item } = Ask::of(op);
        let group = Group { kind, millis, items: vec![item] };
        match self.attempt(&[group], 1).await {
            Ok(verdicts) => Ok(verdicts.first().copied().unwrap_or(Verdict::Other)),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Carries operations out in as few statements as can be, and tells each caller as soon as its answer is known.
    pub(super) async fn carry(&self, batch: Vec<Waiting>) {
        let answers = self.carry_together(&batch).await;
        let mut alone = Vec::new();
        for (waiting, answer) in batch.into_iter().zip(answers) {
            match answer {
                Some(answer) => waiting.tell(answer),
                None => alone.push(waiting),
            }
        }
        for waiting in alone {
            if waiting.is_wanted() {
                let answer = self.carry_one(&waiting.op).await;
                waiting.tell(answer);
            }
        }
    }

    /// Has the answers to all, but for those that have to be carried out by themselves.
    async fn carry_together(&self, batch: &[Waiting]) -> Vec<Option<Answer>> {
        let asks: Vec<_> = batch.iter().map(|waiting| Ask::of(&waiting.op)).collect();
        let leaders = leaders(&asks);
        let groups = groups(leaders.clone());
        let mut answers = Answers::new();
        // Each unit is tried again by itself: what is done is not done twice because something else failed.
        let size = if D::JOINT { groups.len().max(1) } else { 1 };
        for unit in groups.chunks(size) {
            self.carry_unit(unit, &mut answers).await;
        }
        // By the word of its leader, somebody else has the key: that may be one who asks again for what is its own.
        let open: Vec<_> = (asks.iter().zip(&leaders))
            .filter(|(ask, leader)| ask.item != leader.item && answers.get(leader) == Some(&Some(Ok(Verdict::Other))))
            .map(|(ask, _)| *ask)
            .collect();
        self.find_retries(open, &mut answers).await;
        let answer = |(ask, leader): (&Ask<'_>, &Ask<'_>)| match (answers.get(ask), answers.get(leader)) {
            (Some(own), _) => own.clone(),
            // A claim of the same key that came later sees the earlier one.
            (None, Some(Some(Ok(Verdict::Mine)))) if ask.item != leader.item => Some(Ok(Verdict::Other)),
            (None, leaders) => leaders.cloned().flatten(),
        };
        asks.iter().zip(&leaders).map(answer).collect()
    }

    async fn carry_unit<'a>(&self, unit: &[Group<'a>], answers: &mut Answers<'a>) {
        let asks: Vec<_> = unit.iter().flat_map(Ask::all_of).collect();
        match self.attempt(unit, asks.len()).await {
            Ok(verdicts) => answers.extend(asks.into_iter().zip(verdicts.into_iter().map(|verdict| Some(Ok(verdict))))),
            // One of them is to blame. By themselves, the others get their answers.
            Err(Failure::Locked(_) | Failure::Row(_)) if asks.len() > 1 => {
                answers.extend(asks.into_iter().map(|ask| (ask, None)));
            }
            Err(failure) => self.fail(asks, failure, answers),
        }
    }

    /// Finds the claims whose keys their tokens hold already; they are renewed by themselves.
    async fn find_retries<'a>(&self, claims: Vec<Ask<'a>>, answers: &mut Answers<'a>) {
        for group in groups(claims) {
            let asks = Ask::all_of(&group);
            match self.patiently(|| D::look(self, &group.items)).await {
                Ok(verdicts) => {
                    let held = asks.zip(verdicts).filter(|(_, verdict)| *verdict == Verdict::Mine);
                    answers.extend(held.map(|(ask, _)| (ask, None)));
                }
                Err(failure) => self.fail(asks, failure, answers),
            }
        }
    }

    fn fail<'a>(&self, asks: impl IntoIterator<Item = Ask<'a>>, failure: Failure, answers: &mut Answers<'a>) {
        let error = self.failed(failure);
        answers.extend(asks.into_iter().map(|ask| (ask, Some(Err(error.clone())))));
    }

    async fn attempt(&self, unit: &[Group<'_>], count: usize) -> Result<Vec<Verdict>, Failure> {
        let lone_claim = count == 1 && unit.iter().all(|group| group.kind == Kind::Claim);
        self.patiently(|| async {
            match D::carry(self, unit).await {
                // Whoever holds the row is about to settle it: asking again later costs less than waiting here.
                Err(Failure::Locked(_)) if lone_claim => Ok(vec![Verdict::Other]),
                Err(Failure::Locked(why)) if count == 1 => Err(Failure::Retry(why)),
                other => other,
            }
        })
        .await
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

/// None is for what has to be carried out by itself.
type Answers<'a> = BTreeMap<Ask<'a>, Option<Answer>>;

impl<'a> Ask<'a> {
    fn of(op: &'a Op) -> Self {
        Self { kind: op.kind, millis: op.millis, item: Item { key: &op.key, token: &op.token } }
    }

    fn all_of(group: &Group<'a>) -> impl Iterator<Item = Self> {
        group.items.iter().map(|item| Self { kind: group.kind, millis: group.millis, item: *item })
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
