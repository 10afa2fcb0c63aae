// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
)

// libraryLine matches both forms of a line of ldd(1):
//
//	libssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f...)
//	/lib64/ld-linux-x86-64.so.2 (0x00007f...)
var libraryLine = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// missingLine matches a library that the loader does not find.
var missingLine = regexp.MustCompile(`(?m)^\s*(\S+) => not found`)

// Libraries lists the shared libraries that the programs load, and the loader
// itself, sorted and each once.
func Libraries(ctx context.Context, programs []string) ([]string, error) {
	var libraries []string
	for _, program := range programs {
		output, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("listing the libraries of %s: %w: %s", program, err, output)
		}
		found, err := parseLibraries(string(output))
		if err != nil {
			return nil, fmt.Errorf("listing the libraries of %s: %w", program, err)
		}
		libraries = append(libraries, found...)
	}
	slices.Sort(libraries)
	return slices.Compact(libraries), nil
}

func parseLibraries(output string) ([]string, error) {
	if missing := missingLine.FindStringSubmatch(output); missing != nil {
		return nil, fmt.Errorf("%s is not installed", missing[1])
	}
	var libraries []string
	for _, match := range libraryLine.FindAllStringSubmatch(output, -1) {
		libraries = append(libraries, match[1])
	}
	return libraries, nil
}
