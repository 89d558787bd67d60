use std::{collections::BTreeMap, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    backend::Backend,
    error::Failure,
    lanes::Answer,
    op::{Group, Item, Kind, Op, Verdict},
    store::Inner,
};

/// How often a statement is tried before the others have won; with keys in order one try is the rule.
const TRIES: u32 = 5;

impl<D: Backend> Inner<D> {
    /// Carries one operation out.
    pub(super) async fn carry_one(&self, op: &Op) -> Answer {
        let item = Item { key: &op.key, token: &op.token };
        self.carry_item(op.kind, op.millis, item).await
    }

    async fn carry_item(&self, kind: Kind, millis: i64, item: Item<'_>) -> Answer {
        let group = Group { kind, millis, items: vec![item] };
        match self.attempt(&[group], 1).await {
            Ok(verdicts) => Ok(verdicts.first().copied().unwrap_or(Verdict::Other)),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Carries operations out in as few statements as can be, and answers in their order.
    pub(super) async fn carry(&self, ops: &[Op]) -> Vec<Answer> {
        if let [op] = ops {
            return vec![self.carry_one(op).await];
        }
        let plan = Plan::of(ops);
        let mut answers: BTreeMap<(Kind, i64, Item<'_>), Answer> = BTreeMap::new();
        // Each unit is tried again by itself: what is done is not done twice because something else failed.
        let units = if D::JOINT { vec![&*plan.groups] } else { plan.groups.chunks(1).collect() };
        for unit in units {
            self.carry_unit(unit, &mut answers).await;
        }
        ops.iter()
            .zip(plan.leaders)
            .map(|(op, leader)| {
                let answer = answers.get(&leader).cloned().unwrap_or(Ok(Verdict::Other));
                // A claim of the same key that came later sees the earlier one.
                if leader.2.token != &*op.token && answer == Ok(Verdict::Mine) {
                    return Ok(Verdict::Other);
                }
                answer
            })
            .collect()
    }

    async fn carry_unit<'a>(&self, unit: &[Group<'a>], answers: &mut BTreeMap<(Kind, i64, Item<'a>), Answer>) {
        let items: Vec<_> = unit
            .iter()
            .flat_map(|group| {
                let (kind, millis) = (group.kind, group.millis);
                group.items.iter().map(move |item| (kind, millis, *item))
            })
            .collect();
        match self.attempt(unit, items.len()).await {
            Ok(verdicts) => answers.extend(items.into_iter().zip(verdicts.into_iter().map(Ok))),
            // One of them is to blame. By themselves, the others get their answers.
            Err(Failure::Locked(_) | Failure::Row(_)) if items.len() > 1 => {
                for (kind, millis, item) in items {
                    let answer = self.carry_item(kind, millis, item).await;
                    answers.insert((kind, millis, item), answer);
                }
            }
            Err(failure) => {
                let error = self.failed(failure);
                answers.extend(items.into_iter().map(|item| (item, Err(error.clone()))));
            }
        }
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
        self.patiently(|| D::purge(self, most)).await
    }

    /// Tries again what has lost against others or lost its connection, within the limits of number and time.
    async fn patiently<T, F>(&self, work: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let tries = async {
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
        };
        self.within_limit(tries).await
    }

    pub(super) async fn within_limit<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let limit = self.timeout;
        timeout(limit, work)
            .await
            .unwrap_or_else(|_| Err(Failure::Unreachable(format!("the database gave no answer within {limit:?}"))))
    }
}

/// Operations sorted into groups, and for each of them the item that stands for it.
struct Plan<'a> {
    groups: Vec<Group<'a>>,
    leaders: Vec<(Kind, i64, Item<'a>)>,
}

impl<'a> Plan<'a> {
    fn of(ops: &'a [Op]) -> Self {
        // Two claims of one key would be an error in one statement: the first one goes, whatever its length.
        let mut claims: BTreeMap<&str, (Kind, i64, Item<'a>)> = BTreeMap::new();
        let leaders: Vec<_> = ops
            .iter()
            .map(|op| {
                let item = Item { key: &op.key, token: &op.token };
                let leader = (op.kind, op.millis, item);
                if op.kind == Kind::Claim { *claims.entry(item.key).or_insert(leader) } else { leader }
            })
            .collect();
        let mut sorted = leaders.clone();
        // In one order everywhere: statements that lock the same rows then wait for each other and do not deadlock.
        sorted.sort_unstable();
        sorted.dedup();
        let groups = sorted
            .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
            .filter_map(|chunk| {
                let (kind, millis, _) = *chunk.first()?;
                let items = chunk.iter().map(|(_, _, item)| *item).collect();
                Some(Group { kind, millis, items })
            })
            .collect();
        Self { groups, leaders }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: Kind, millis: i64, key: &str, token: &str) -> Op {
        Op { kind, millis, key: key.into(), token: token.into() }
    }

    #[test]
    fn a_plan_has_each_claimed_key_once_and_all_in_order() {
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
        let plan = Plan::of(&ops);
        let texts: Vec<_> = plan
            .groups
            .iter()
            .map(|group| {
                let items: Vec<_> = group.items.iter().map(|item| format!("{}{}", item.key, item.token)).collect();
                format!("{:?} {} {}", group.kind, group.millis, items.join(" "))
            })
            .collect();
        assert_eq!(texts, ["Confirm 9 b6 b7", "Claim 5 a2 b1", "Claim 7 c5"]);
        assert_eq!(plan.leaders[3].2.token, "1");
        assert_eq!(plan.leaders[7], plan.leaders[5]);
    }
}
