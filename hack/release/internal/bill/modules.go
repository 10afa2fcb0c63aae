// SPDX-License-Identifier: Apache-2.0

package bill

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"slices"
	"strings"
)

// Module is one module that a binary was linked from.
type Module struct {
	Path, Version string
	// Sum is that of go.sum.
	Sum string
}

// Stdlib is the name of the standard library, which is no module of its own.
const Stdlib = "stdlib"

// ReadModules lists the modules of a binary without its own, in the order of paths, the
// standard library included. A replaced module is an error: its source is not that of
// its name.
func ReadModules(binary string) ([]Module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s: %w", binary, err)
	}
	modules := []Module{{Path: Stdlib, Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("reading the modules of %s: %s is replaced by %s: take the replace directive out of go.mod", binary, m.Path, m.Replace.Path)
		}
		modules = append(modules, Module{Path: m.Path, Version: m.Version, Sum: m.Sum})
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}
