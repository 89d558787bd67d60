//! What must compile, whatever surrounds it, and what it then registers.
//!
//! Each situation is a module, so that all of them are one program; the fixture `edition` checks them in the edition of 2021.

mod an_explicit_list;
mod beside_other_attributes;
mod codecs_of_many_shapes;
mod conditions_above_and_below;
mod constants_and_expressions_as_values;
mod derives_of_every_kind;
mod every_kind_of_argument;
mod every_return_type;
mod functions_named_like_what_is_generated;
mod in_modules_and_functions;
mod out_of_macros_by_example;
mod raw_identifiers;
mod services_of_every_kind;
mod the_function_stays_a_function;
mod types_named_like_those_of_the_library;
mod without_the_prelude;
mod without_unsafe_code;

/// What the functions in `file` registered.
fn registered(file: &str) -> Vec<acemq::registry::Registration> {
    acemq::registry::collected().into_iter().filter(|found| found.location.file == file).collect()
}
