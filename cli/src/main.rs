//! The swirl command. All of it is in the library.

fn main() -> std::process::ExitCode {
    swirl_cli::main()
}
