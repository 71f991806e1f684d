#include <unistd.h>

#include <iostream>

#include "tests/bench/load/command.hpp"

int main(int argc, char** argv) {
    return load::run_command(argc, argv, std::cout, std::cerr, ::isatty(STDERR_FILENO) != 0);
}
