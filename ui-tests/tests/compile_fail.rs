//! What the pinned compiler says of each mistake, word for word.
//!
//! After a change, `TRYBUILD=overwrite cargo test -p acemq-ui-tests --test compile_fail` writes the files anew; read them.

#[test]
fn each_mistake_is_explained() {
    trybuild::TestCases::new().compile_fail("fail/*/*.rs");
}
