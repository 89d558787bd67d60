//! What must compile, whatever surrounds it, and what it then registers.

#[test]
fn each_program_compiles_and_runs() {
    trybuild::TestCases::new().pass("pass/*.rs");
}
