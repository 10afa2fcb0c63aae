// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	output := flag.String("output", "", "file to write; empty writes to standard output")
	flag.Parse()
	if err := run(*output); err != nil {
		fmt.Fprintln(os.Stderr, "listsemantics:", err)
		os.Exit(1)
	}
}

func run(output string) error {
	source, err := Generate()
	if err != nil {
		return err
	}
	if output == "" {
		_, err = os.Stdout.Write(source)
		return err
	}
	return os.WriteFile(output, source, 0o644)
}
