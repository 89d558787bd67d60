//! What an application gives to its consumers.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
};

/// The values that an application gives to all of its consumers, one for each type.
#[derive(Default)]
pub struct Scope {
    values: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl Scope {
    /// Puts a value in, in place of an earlier one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Whether a requirement is met.
    #[must_use]
    pub fn meets(&self, requirement: &Requirement) -> bool {
        self.values.contains_key(&requirement.id)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("values", &self.values.len()).finish()
    }
}

/// One value that a consumer needs from its application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Requirement {
    id: TypeId,
    /// The type, as a person would write it.
    pub type_name: &'static str,
}

/// What a consumer needs from its application, found out before the first connection.
#[derive(Debug, Default)]
pub struct Requirements {
    states: Vec<Requirement>,
    stores: Vec<StoreCheck>,
}

/// Says what is wrong with the claim store of a consumer, or with its having none.
pub(crate) type StoreCheck = fn(Option<&dyn Any>) -> Result<(), String>;

impl Requirements {
    /// Needs a value of this type, provided with `App::state`.
    pub fn state<T: 'static>(&mut self) {
        self.states.push(Requirement { id: TypeId::of::<T>(), type_name: type_name::<T>() });
    }

    /// What was asked for, in the order of the arguments.
    #[must_use]
    pub fn as_slice(&self) -> &[Requirement] {
        &self.states
    }

    /// Needs a claim store that passes this check.
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    pub(crate) fn claim_store(&mut self, check: StoreCheck) {
        self.stores.push(check);
    }

    /// What the claim store of the consumer has to pass.
    pub(crate) fn store_checks(&self) -> &[StoreCheck] {
        &self.stores
    }
}
